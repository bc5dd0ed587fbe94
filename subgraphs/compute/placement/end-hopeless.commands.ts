import type { Tx } from "../../../infra/db/database.ts";
import { finishWorkload } from "../lifecycle/finish.commands.ts";
import type { DueStage } from "./fair-batch.ts";
import type { StageSeeker } from "./seeker.ts";

/** A workload that waits for capacity and will never use any. */
export interface HopelessWait {
  workloadId: string;
  tenantId: string;
  /** Its stage that waits. */
  stageRunId: string;
  because: "cancelled" | "penniless";
}

/**
 * Those of a batch that have nothing to wait for: somebody asked for their end while nothing of them ran, or their own
 * limit is used up with nothing held that could come back.
 */
export function hopelessOf(batch: readonly DueStage[], seekers: readonly StageSeeker[]): HopelessWait[] {
  const cancelled = batch.filter(({ workload }) => workload.cancelRequested);
  const penniless = seekers.filter(
    ({ stage, waitsFor }) => waitsFor === "workload_budget" && stage.workload.heldMicros === 0n,
  );
  return [
    ...cancelled.map((stage) => ({ ...named(stage), because: "cancelled" as const })),
    ...penniless.map(({ stage }) => ({ ...named(stage), because: "penniless" as const })),
  ];
}

function named({ workload, tenantId, stageRunId }: DueStage): Omit<HopelessWait, "because"> {
  return { workloadId: workload.id, tenantId, stageRunId };
}

/** Ends such a workload, unless it has meanwhile got what it waited for. */
export async function endHopeless(tx: Tx, { workloadId, because }: HopelessWait, now: Date): Promise<void> {
  const [still] = await tx.sql(`select 1 from compute.workload where id = $1 and ${STILL[because]} for update`, [
    workloadId,
  ]);
  if (still) await finishWorkload(tx, { workloadId, ...ENDS[because], now });
}

const STILL: Record<HopelessWait["because"], string> = {
  cancelled: "cancel_requested_at is not null",
  penniless: "held_micros = 0 and waiting_reason = 'workload_budget'",
};

const ENDS = {
  cancelled: { event: "cancel", reason: "cancelled", message: "Cancelled." },
  penniless: {
    event: "fail",
    reason: "budget_exhausted",
    message: "What is left of the workload's limit does not pay for the first window of any offer that fits.",
  },
} as const;
