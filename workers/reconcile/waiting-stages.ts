import { topics } from "../../subgraphs/compute/topics.ts";
import type { ComputeWorkerDeps } from "../compute/compute-workers.ts";
import type { Placer } from "../compute/place-stage.ts";
import type { Reconciler } from "./schedule.ts";

/** Batches of one round; what is left has its due time. */
const BATCHES = 8;

/**
 * Places stages whose ring was lost or whose wait is over. When capacity came free, waiting stages are tried before
 * their time, as long as that places any: a thousand that wait for something else are not tried for one that was freed.
 */
export function waitingStagesReconciler(deps: ComputeWorkerDeps, placer: Placer): Reconciler {
  return {
    name: "waiting stages",
    everyMs: 1_000,
    topic: topics.capacity,
    run: async (signal, wokenAt) => {
      for (let n = 0; n < BATCHES && !signal.aborted && (await anyDue(deps)); n++)
        if ((await placer.placeBatch({ signal })).looked === 0) break;
      if (!wokenAt) return;
      for (let n = 0; n < BATCHES && !signal.aborted; n++)
        if ((await placer.placeBatch({ signal, evenIfUntriedSince: wokenAt })).placed === 0) break;
    },
  };
}

async function anyDue({ db, clock }: ComputeWorkerDeps): Promise<boolean> {
  const due = await db.sql("select 1 from compute.stage where status = 'placing' and next_try_at <= $1 limit 1", [
    clock.now(),
  ]);
  return due.length > 0;
}
