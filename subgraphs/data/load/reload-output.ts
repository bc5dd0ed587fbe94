import type { Tx } from "../../../infra/db/database.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { SinkOutput } from "../../compute/published.ts";
import { loadOutput } from "../jobs.ts";
import type { LoadDeps } from "./load.commands.ts";
import { SinkLoad } from "./load.entity.ts";
import { loadMachine } from "./load.machine.ts";
import { LOAD } from "./load.refusals.ts";
import { isSuperseded } from "./load-claim.ts";
import { insertLoad, keepCredential } from "./open-load.ts";

export interface ReloadAsk {
  workloadId: string;
  /** Of the output. */
  name: string;
  /** Needed where several stages have an output of the name. */
  stageId: string | null;
}

/**
 * Has the latest saved output of a name loaded again; answers the load, which waits now. One that waits or runs already
 * is answered as it is. Refused for what the output is refused for, and as `load_superseded` or `sink_credential_gone`.
 */
export function reloadOutput({ db, results }: LoadDeps, actor: Actor, ask: ReloadAsk, now: Date): Promise<SinkLoad> {
  const { tenantId } = actor;
  const { workloadId } = ask;
  return db.command(async (tx) => {
    const output = await results.sinkOutput(tx, { ...ask, tenantId });
    await results.lock(tx, { tenantId, workloadId });
    const run = { tenantId, workloadId, stageId: output.stageId, generation: output.generation };
    if (await isSuperseded(tx, run)) throw new Refused(LOAD.load_superseded, { field: "/name" });
    return waitingLoad(tx, { tenantId, workloadId, output, now });
  });
}

async function waitingLoad(
  tx: Tx,
  { tenantId, workloadId, output, now }: { tenantId: string; workloadId: string; output: SinkOutput; now: Date },
): Promise<SinkLoad> {
  const made = await insertLoad(tx, { tenantId, workloadId, output, now });
  const load = made ?? (await lockedLoad(tx, { tenantId, workloadId, output }));
  if (!made) {
    if (loadMachine.decide(load.state, "asked_again") !== "pending") return load; // it waits or runs already
    await tx.sql(
      `update data.sink_load set state = 'pending', row_count = null, error = null, attempts = 0, queued_at = $3,
         started_at = null, ended_at = null, run_state = 'none' where tenant_id = $1 and id = $2`,
      [tenantId, load.id, now],
    );
  }
  await requireCredential(tx, load, now);
  await enqueue(tx, loadOutput, { loadId: load.id }, now);
  return lockedLoad(tx, { tenantId, workloadId, output });
}

async function lockedLoad(
  tx: Tx,
  { tenantId, workloadId, output }: { tenantId: string; workloadId: string; output: SinkOutput },
): Promise<SinkLoad> {
  const load = await tx.row(
    SinkLoad,
    `where t.tenant_id = $1 and t.workload_id = $2 and t.stage_id = $3 and t.generation = $4 and t.name = $5 for update`,
    [tenantId, workloadId, output.stageId, output.generation, output.name],
  );
  if (!load) throw new Error("a load went while its workload was locked");
  return load;
}

/** The refusal ends the command, so nothing of it is kept. */
async function requireCredential(tx: Tx, load: SinkLoad, now: Date): Promise<void> {
  try {
    await keepCredential(tx, load, now);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    throw new Refused(LOAD.sink_credential_gone, { field: "/name" });
  }
}
