import type { Database } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { finishWorkload, requestStop } from "../lifecycle/finish.commands.ts";
import { Workload } from "./workload.entity.ts";
import { isTerminal } from "./workload.machine.ts";
import { appendEvent } from "./workload.transitions.ts";

/**
 * Asks for a workload's end. One that is over stays as it is; a repeated request changes nothing. What has not started
 * ends here and now, a running command is stopped by its host and ends the workload with its exit.
 */
export function cancelWorkload(db: Database, actor: Actor, id: string, now: Date): Promise<Workload> {
  return db.command(async (tx) => {
    const mine = "where t.tenant_id = $1 and t.id = $2";
    const workload = isId("workload", id) && (await tx.row(Workload, `${mine} for update`, [actor.tenantId, id]));
    if (!workload) throw new Refused(COMMON.not_found, { field: "/id" });
    if (isTerminal(workload.status) || workload.cancelRequestedAt) return workload;
    await tx.sql("update compute.workload set cancel_requested_at = $3 where tenant_id = $1 and id = $2", [
      actor.tenantId,
      id,
      now,
    ]);
    await appendEvent(tx, id, "workload.cancel_requested", { by: actor.memberId ?? actor.keyId }, now);
    if ((await requestStop(tx, id, "cancel", now)) === "nothing_running")
      await finishWorkload(tx, { workloadId: id, event: "cancel", reason: "cancelled", message: "Cancelled.", now });
    return (await tx.row(Workload, mine, [actor.tenantId, id]))!;
  });
}
