import type { Database, Tx } from "../../../infra/db/database.ts";
import { forJob } from "../../../infra/db/job-bounds.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import type { RunResultsPort } from "../../compute/published.ts";
import { appendAccountEvent } from "../account-event/append-account-event.ts";
import { releaseConnections } from "../connection/connection-uses.ts";
import { loadOutput, recordRun } from "../jobs.ts";
import type { RunState, SinkLoad } from "./load.entity.ts";
import { loadMachine } from "./load.machine.ts";
import { type LoadClaim, loadFacts, requireClaim } from "./load-claim.ts";
import type { LoadFailure } from "./load-failure.ts";

export interface LoadDeps {
  db: Database;
  results: RunResultsPort;
}

/** What a load put into its table. */
export interface LoadedRows {
  rows: number;
  /** The figures of the run that were written beside them are its last ones. */
  runFinal: boolean;
}

/** Says that the rows are in the table. Throws `StaleClaim` when another process has the load. */
export function settleLoaded({ db, results }: LoadDeps, claim: LoadClaim, made: LoadedRows, now: Date): Promise<void> {
  return db.command(async (tx) => {
    await results.lock(tx, claim);
    const row = await requireClaim(tx, claim);
    if (loadMachine.decide(row.state, "stored") !== "loaded") return;
    const runState = await runStateAfter(tx, claim, made, results);
    await tx.sql(
      `update data.sink_load set state = 'loaded', row_count = $3, error = null, lease_until = null, ended_at = $4,
         run_state = $5, attempts = 0, queued_at = $4 where tenant_id = $1 and id = $2`,
      [row.tenantId, row.id, made.rows, now, runState],
    );
    if (runState === "due") await enqueue(tx, recordRun, { loadId: row.id }, now);
    // An open one goes on with the same credential once the workload is settled.
    if (runState === "final") await releaseConnections(tx, row.id);
    await sendForNext(tx, row.tenantId, now);
    await tell(tx, row, { word: "loaded", more: { rows: made.rows } }, { results, now });
  }, forJob(claim.tenantId));
}

/** The workload is locked: it has been settled since the figures were read, or will find this row when it is. */
async function runStateAfter(
  tx: Tx,
  claim: LoadClaim,
  { runFinal }: LoadedRows,
  results: RunResultsPort,
): Promise<RunState> {
  if (runFinal) return "final";
  return (await results.facts(tx, claim))?.final ? "due" : "open";
}

/** Ends the load; what was in the table before is there still. Throws `StaleClaim` when another process has it. */
export function settleFailed({ db, results }: LoadDeps, claim: LoadClaim, failure: LoadFailure, now: Date) {
  return db.command(async (tx) => {
    await results.lock(tx, claim);
    await markFailed(tx, await requireClaim(tx, claim), { failure, results, now });
  }, forJob(claim.tenantId));
}

/** Fails the load in the state that its row has; the workload is locked. */
export async function markFailed(
  tx: Tx,
  row: SinkLoad,
  { failure, results, now }: { failure: LoadFailure; results: RunResultsPort; now: Date },
): Promise<void> {
  if (loadMachine.decide(row.state, "broke") !== "failed") return;
  await tx.sql(
    `update data.sink_load set state = 'failed', row_count = null, error = $3, lease_until = null, ended_at = $4,
       run_state = 'none' where tenant_id = $1 and id = $2`,
    [row.tenantId, row.id, failure.word, now],
  );
  await releaseConnections(tx, row.id);
  await sendForNext(tx, row.tenantId, now);
  await tell(tx, row, { word: "failed", more: { error: failure.word } }, { results, now });
}

/** Lets the load go so that any process can take it up: it begins from the start, and this try is not counted. */
export function releaseLoad(db: Database, claim: LoadClaim, now: Date): Promise<void> {
  return db.command(async (tx) => {
    const row = await requireClaim(tx, claim);
    await tx.sql("update data.sink_load set attempts = attempts - 1 where tenant_id = $1 and id = $2", [
      row.tenantId,
      row.id,
    ]);
    await putBack(tx, row, now);
  }, forJob(claim.tenantId));
}

/** Has the load wait again, and queues it; its lock is held. */
export async function putBack(tx: Tx, row: SinkLoad, now: Date): Promise<void> {
  if (loadMachine.decide(row.state, "released") !== "pending") return;
  await tx.sql(
    "update data.sink_load set state = 'pending', lease_until = null, queued_at = $3 where tenant_id = $1 and id = $2",
    [row.tenantId, row.id, now],
  );
  await enqueue(tx, loadOutput, { loadId: row.id }, now);
}

/** The team's oldest load that waits may have waited for this one's end. */
async function sendForNext(tx: Tx, tenantId: string, now: Date): Promise<void> {
  const [next] = await tx.sql<{ id: string }>(
    "select id from data.sink_load where tenant_id = $1 and state = 'pending' order by created_at, id limit 1",
    [tenantId],
  );
  if (next) await enqueue(tx, loadOutput, { loadId: next.id }, now);
}

/** In the workload's own stream, and then in the team's, whose lock comes last. */
async function tell(
  tx: Tx,
  row: SinkLoad,
  { word, more }: { word: "loaded" | "failed"; more: { rows: number } | { error: string } },
  { results, now }: { results: RunResultsPort; now: Date },
): Promise<void> {
  const { tenantId, workloadId } = row;
  const sink = { name: row.name, connection_id: row.connectionId, table: row.targetTable };
  const where = { stage_id: row.stageId, generation: row.generation };
  await results.appendEvent(tx, {
    workloadId,
    type: `workload.sink_${word}`,
    payload: { ...sink, ...where, ...more },
    now,
  });
  await appendAccountEvent(tx, { tenantId, type: `load.${word}`, payload: { ...loadFacts(row), ...more }, now });
}
