import type { Tx } from "../../../infra/db/database.ts";
import type { DueWorkload } from "./fair-batch.ts";
import type { PlacementDeps } from "./placement-deps.ts";
import type { StageSeeker } from "./seeker.ts";
import { nextTry, type ToldReason, worthTelling } from "./waiting.ts";
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
  const told = await toldReasons(
    tx,
    seekers.map((s) => s.stage.workload),
  );
  const tries = seekers.map(({ stage, match, waitsFor }) => {
    const { workload } = stage;
    const at = nextTry(now, workload.waitingSince, deps.random);
    steps.wait(stage, waitsFor!);
    if (worthTelling(waitsFor!, told.get(workload.id) ?? [], now))
      steps.record(stage, "workload.waiting", {
        reason: waitsFor!,
        since: workload.waitingSince!.toISOString(),
        next_try_at: at.toISOString(),
        stage_id: stage.stageId,
        rejected: match.rejected.counts,
      });
    return at;
  });
  await tx.sql(
    `update compute.stage s set next_try_at = v.at, last_tried_at = $3
     from unnest($1::text[], $2::timestamptz[]) as v(id, at) where s.id = v.id`,
    [seekers.map((s) => s.stage.stageRunId), tries, now],
  );
}

/** Events of a workload that are looked through for reasons: while it waits, hardly anything else is recorded. */
const LATEST_EVENTS = 32;

/** What events have said of the present wait, by workload; nothing for one that only begins to wait. */
async function toldReasons(tx: Tx, workloads: readonly DueWorkload[]): Promise<Map<string, ToldReason[]>> {
  const waiting = workloads.filter((w) => w.waitingSince !== null);
  if (waiting.length === 0) return new Map();
  const rows = await tx.sql<ToldReason & { id: string }>(
    `select v.id, e.payload->>'reason' as reason, e.created_at as at
     from unnest($1::text[], $2::timestamptz[]) as v(id, since) cross join lateral (
       select type, payload, created_at from compute.workload_event where workload_id = v.id
       order by seq desc limit ${LATEST_EVENTS}) e
     where e.type = 'workload.waiting' and e.created_at >= v.since`,
    [waiting.map((w) => w.id), waiting.map((w) => w.waitingSince)],
  );
  return Map.groupBy(rows, (row) => row.id);
}
