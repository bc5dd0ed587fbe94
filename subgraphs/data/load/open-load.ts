import type { Tx } from "../../../infra/db/database.ts";
import type { OfferedEvent } from "../../../infra/db/offered-event.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { RunResultsPort, SinkOutput } from "../../compute/published.ts";
import { pinConnection } from "../connection/connection-uses.ts";
import { loadOutput, recordRun } from "../jobs.ts";
import { markFailed } from "./load.commands.ts";
import { SinkLoad } from "./load.entity.ts";
import { LoadFailure } from "./load-failure.ts";

/**
 * What follows for loads from what happens to workloads, in the transaction in which it happens: a stage that is
 * completed has its outputs loaded, and once a workload is settled the figures beside what was loaded are made final.
 */
export async function takeRunEvent(tx: Tx, event: OfferedEvent, results: RunResultsPort): Promise<void> {
  const workloadId = event.subject?.workload_id;
  if (workloadId === undefined) return;
  if (event.type === "workload.stage_completed") await openLoads(tx, { ...event, workloadId }, results);
  else if (event.type === "workload.settled") await sendForFinalFigures(tx, { ...event, workloadId });
}

type RunEvent = OfferedEvent & { workloadId: string };

async function openLoads(tx: Tx, event: RunEvent, results: RunResultsPort): Promise<void> {
  const { tenantId, workloadId, payload, now } = event;
  const run = { tenantId, workloadId, stageId: String(payload.stage_id), generation: Number(payload.generation) };
  for (const output of await results.sinkOutputs(tx, run)) {
    const load = await insertLoad(tx, { tenantId, workloadId, output, now });
    if (!load) continue; // told before
    try {
      await keepCredential(tx, load, now);
      await enqueue(tx, loadOutput, { loadId: load.id }, now);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const gone = new LoadFailure("credential_inactive", "The pinned credential is not there any more.");
      await markFailed(tx, load, { failure: gone, results, now });
    }
  }
}

/** A load that waits for the output, without its place in the queue; null when there is one already. */
export async function insertLoad(
  tx: Tx,
  { tenantId, workloadId, output, now }: { tenantId: string; workloadId: string; output: SinkOutput; now: Date },
): Promise<SinkLoad | null> {
  const id = newId("load", now);
  await tx.sql(
    `insert into data.sink_load (id, tenant_id, workload_id, stage_id, generation, name, connection_id, secret_id,
       secret_version, target_table, path, sha256, bytes, is_tar, state, attempts, fence, queued_at, run_state, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'pending', 0, 0, $15, 'none', $15)
     on conflict (workload_id, stage_id, generation, name) do nothing`,
    [
      ...[id, tenantId, workloadId, output.stageId, output.generation, output.name, output.connectionId],
      ...[output.secretId, output.secretVersion, output.table, output.path, output.sha256, output.bytes, output.isTar],
      now,
    ],
  );
  return tx.row(SinkLoad, "where t.id = $1", [id]);
}

/** Keeps the version that was pinned at admission, whatever became of its connection. Refused when it is gone. */
export async function keepCredential(tx: Tx, load: SinkLoad, now: Date): Promise<void> {
  const { tenantId, connectionId, secretId, secretVersion } = load;
  const keep = { secretId, version: secretVersion };
  await pinConnection(tx, { tenantId, connectionId, holderId: load.id, now, keep });
}

async function sendForFinalFigures(tx: Tx, { tenantId, workloadId, now }: RunEvent): Promise<void> {
  const due = await tx.sql<{ id: string }>(
    `update data.sink_load set run_state = 'due', attempts = 0, queued_at = $3
      where tenant_id = $1 and workload_id = $2 and state = 'loaded' and run_state = 'open' returning id`,
    [tenantId, workloadId, now],
  );
  for (const { id } of due) await enqueue(tx, recordRun, { loadId: id }, now);
}
