import type { Tx } from "../../../infra/db/database.ts";
import type { PlacementDeps } from "./placement-deps.ts";
import type { StageSeeker } from "./seeker.ts";
import { nextTry } from "./waiting.ts";
import type { WorkloadSteps } from "./workload-steps.ts";

/** Stages that got nothing: why, and when somebody looks again. */
export async function writeWaiting(
  tx: Tx,
  deps: PlacementDeps,
  seekers: readonly StageSeeker[],
  steps: WorkloadSteps,
  now: Date,
): Promise<void> {
  if (seekers.length === 0) return;
  const tries = seekers.map(({ stage, match, waitsFor }) => {
    const since = stage.workload.waitingReason === waitsFor ? stage.workload.waitingSince : null;
    const at = nextTry(now, since, deps.random);
    steps.wait(stage, waitsFor!, at, { stage_id: stage.stageId, rejected: match.rejected.counts });
    return at;
  });
  await tx.sql(
    `update compute.stage s set next_try_at = v.at, last_tried_at = $3
     from unnest($1::text[], $2::timestamptz[]) as v(id, at) where s.id = v.id`,
    [seekers.map((s) => s.stage.stageRunId), tries, now],
  );
}
