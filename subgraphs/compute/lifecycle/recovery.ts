import type { Tx } from "../../../infra/db/database.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import { placeStage } from "../jobs.ts";
import type { Placement } from "../placement/placement.entity.ts";
import type { Stage } from "../stage/stage.entity.ts";
import type { Workload } from "../workload/workload.entity.ts";
import { appendEvent, moveWorkload } from "../workload/workload.transitions.ts";

/** Recoveries that a stage may use before its workload fails. */
const MAX_RECOVERIES = 10;

/** How a workload ends that does not go on although it could. */
export interface EarlyEnd {
  event: "fail" | "cancel";
  reason: string;
  message: string;
}

/** Somebody asked for the end, or the deadline has passed: nothing further of the workload may begin. Null when neither. */
export function wantedEnd(workload: Pick<Workload, "cancelRequestedAt" | "completeBy">, now: Date): EarlyEnd | null {
  if (workload.cancelRequestedAt) return { event: "cancel", reason: "cancelled", message: "Cancelled." };
  if (workload.completeBy && workload.completeBy <= now)
    return { event: "fail", reason: "deadline_exceeded", message: "The deadline passed before the work was done." };
  return null;
}

/**
 * What follows the loss of a generation. Whoever wants the end gets it; else another generation follows as long as
 * policy and the number of recoveries allow it. A command that never ran has lost nothing, whatever the policy.
 */
export function afterLoss(workload: Workload, stage: Stage, lost: Placement, now: Date): EarlyEnd | "recover" {
  const wanted = wantedEnd(workload, now);
  if (wanted) return wanted;
  if (lost.runningAt && !stage.spec.resumeOnInterruption)
    return {
      event: "fail",
      reason: "recovery_disabled",
      message: "The machine was lost, and the workload does not resume on interruption.",
    };
  if (stage.recoveries >= MAX_RECOVERIES)
    return {
      event: "fail",
      reason: "recovery_exhausted",
      message: `The machine was lost ${stage.recoveries + 1} times; no further recovery is tried.`,
    };
  return "recover";
}

/** Every loss is recorded, whatever follows it. */
export function recordInterruption(tx: Tx, lost: Placement, trigger: string, now: Date): Promise<void> {
  const where = { stage_id: lost.stageId, generation: lost.generation };
  const payload = { ...where, trigger, notice_at: null, last_manifest_id: null };
  return appendEvent(tx, lost.workloadId, "workload.interrupted", payload, now);
}

/** Sends the stage back to look for capacity. An offer whose machine was lost before the command ran comes last. */
export async function recover(tx: Tx, stage: Stage, lost: Placement, trigger: string, now: Date): Promise<void> {
  const failedOfferIds = lost.runningAt ? [] : [...new Set([...stage.failedOfferIds, lost.offerId])];
  await tx.sql(
    `update compute.stage set status = 'placing', fence = fence + 1, next_try_at = $2, recoveries = recoveries + 1,
       failed_offer_ids = $3 where id = $1 and status in ('starting', 'running')`,
    [stage.id, now, failedOfferIds],
  );
  const payload = {
    stage_id: stage.stageId,
    generation: stage.generation,
    trigger,
    from_generation: stage.generation,
    next_generation: stage.generation + 1,
    attempt: stage.recoveries + 1,
    attempts_left: MAX_RECOVERIES - stage.recoveries - 1,
  };
  const moved = await moveWorkload(tx, stage.workloadId, { event: "interrupt", now, payload });
  // A loss in the middle of a recovery changes no status, but that another generation follows is worth knowing.
  if (moved === null) await appendEvent(tx, stage.workloadId, "workload.recovering", payload, now);
  await enqueue(tx, placeStage, { stageRunId: stage.id }, now);
}
