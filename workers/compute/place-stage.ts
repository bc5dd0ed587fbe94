import { LIMITS } from "../../infra/kernel/limits.ts";
import { DONE, implementJob, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { placeStage } from "../../subgraphs/compute/jobs.ts";
import type { ClaimedBatch } from "../../subgraphs/compute/placement/claim.commands.ts";
import { claimBatch } from "../../subgraphs/compute/placement/claim.commands.ts";
import { LockedRows } from "../../subgraphs/compute/placement/locked-rows.ts";
import { type ComputeWorkerDeps } from "./compute-workers.ts";
import { createLauncher } from "./launch-order.ts";

/** Which waiting stages to look at. */
export interface PlaceRequest {
  signal: AbortSignal;
  /** Also stages whose next try is not due, unless somebody looked at them since. */
  evenIfUntriedSince?: Date;
}

export interface Placed {
  looked: number;
  placed: number;
}

/** Places waiting stages, a fair batch at a time. One for each process. */
export interface Placer {
  /** Takes one batch and sends its orders out. Resolves when each order's outcome is written down. */
  placeBatch(request: PlaceRequest): Promise<Placed>;
}

/** Far beyond any next try. */
const WHENEVER = new Date("9999-01-01T00:00:00Z");

export function createPlacer(deps: ComputeWorkerDeps): Placer {
  const launchOrder = createLauncher(deps);
  const locked = new LockedRows();
  let lastTenant = "";
  // Claims of one process follow each other: together they would only wait for the same capacity and account rows,
  // while the one in front takes all that has piled up in the meantime.
  let turn: Promise<unknown> = Promise.resolve();
  const claim = ({ evenIfUntriedSince }: PlaceRequest): Promise<ClaimedBatch> => {
    const mine = turn.then(async () => {
      const request = {
        limit: LIMITS.claimBatch,
        afterTenant: lastTenant,
        dueBy: evenIfUntriedSince ? WHENEVER : deps.clock.now(),
        untriedSince: evenIfUntriedSince ?? null,
      };
      const batch = await claimBatch(deps, request, locked);
      lastTenant = batch.lastTenant;
      return batch;
    });
    turn = mine.catch(() => {}); // who asked for it gets the error; the next claim starts anew
    return mine;
  };
  return {
    async placeBatch(request) {
      const batch = await claim(request);
      await Promise.all(batch.orders.map((order) => launchOrder(order, request.signal)));
      return { looked: batch.looked, placed: batch.orders.length };
    },
  };
}

/**
 * A doorbell: it names the stage that rang, and batches are taken from the front, in fair order, until that stage has
 * had its turn; it rings again for one that only a busy row was in the way of. A stage whose ring was lost is found by
 * its due time.
 */
export function placeStageJob(deps: ComputeWorkerDeps, placer: Placer): JobImplementation<{ stageRunId: string }> {
  return implementJob(placeStage, async ({ stageRunId }, { signal }) => {
    while (!signal.aborted) {
      const nextTryAt = await nextTryOf(deps, stageRunId);
      if (nextTryAt === null) return DONE;
      const inMs = nextTryAt.getTime() - deps.clock.now().getTime();
      if (inMs > LIMITS.busyStageMs) return DONE;
      if (inMs > 0) return { outcome: "later", at: nextTryAt, reason: "a row that the stage needs is being written" };
      const { looked } = await placer.placeBatch({ signal });
      if (looked === 0) return { outcome: "retry", reason: "the stage or its workload is being written" };
    }
    return DONE;
  });
}

/** Null for a stage that does not wait for capacity. */
async function nextTryOf(deps: ComputeWorkerDeps, stageRunId: string): Promise<Date | null> {
  const [waiting] = await deps.db.sql<{ at: Date }>(
    "select next_try_at as at from compute.stage where id = $1 and status = 'placing'",
    [stageRunId],
  );
  return waiting?.at ?? null;
}
