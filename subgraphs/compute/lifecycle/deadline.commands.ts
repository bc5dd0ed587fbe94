import type { Tx } from "../../../infra/db/database.ts";
import { Workload } from "../workload/workload.entity.ts";
import { isTerminal } from "../workload/workload.machine.ts";
import { finishWorkload, requestStop } from "./finish.commands.ts";

/** Ends a workload whose deadline has passed; returns the deadline when it lies ahead, null when nothing is left to do. */
export async function stopAtDeadline(tx: Tx, workloadId: string, now: Date): Promise<Date | null> {
  const workload = await tx.row(Workload, "where t.id = $1 for update", [workloadId]);
  if (!workload?.completeBy || isTerminal(workload.status)) return null;
  if (workload.completeBy > now) return workload.completeBy;
  if ((await requestStop(tx, workloadId, "stop_deadline", now)) === "asked") return null;
  await finishWorkload(tx, {
    workloadId,
    event: "fail",
    reason: "deadline_exceeded",
    message: "The deadline passed before the work was done.",
    now,
  });
  return null;
}
