import type { Tx } from "../../../infra/db/database.ts";
import { Stage } from "./stage.entity.ts";
import { stageMachine } from "./stage.machine.ts";

/** Ends every stage of a workload that is not over, in the way in which the workload ends; what never began is cancelled. */
export async function endOpenStages(
  tx: Tx,
  workloadId: string,
  event: "complete" | "fail" | "cancel",
  reason: string | null,
  now: Date,
): Promise<void> {
  const stages = await tx.rows(
    Stage,
    "where t.workload_id = $1 and t.ended_at is null order by t.position for update",
    [workloadId],
  );
  for (const stage of stages) {
    const next = stageMachine.decide(stage.status, stage.status === "pending" ? "cancel" : event);
    if (next === "ignore" || next === "refuse") continue;
    await tx.sql("update compute.stage set status = $2, reason = coalesce(reason, $3), ended_at = $4 where id = $1", [
      stage.id,
      next,
      reason,
      now,
    ]);
  }
}
