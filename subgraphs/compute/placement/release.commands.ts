import type { Tx } from "../../../infra/db/database.ts";
import { closeIfGone } from "../lifecycle/finish.commands.ts";
import { topics } from "../topics.ts";
import { Attempt } from "./placement.entity.ts";
import { attemptMachine } from "./placement.machine.ts";
import { giveBack } from "./reserve-capacity.ts";

/**
 * The supplier proved an ended attempt absent: its capacity comes back, once, and its placement closes when this was the
 * last of it. False when the attempt has not ended or this was done before.
 */
export async function confirmGone(tx: Tx, orderId: string, now: Date): Promise<boolean> {
  const [known] = await tx.sql<{ workload_id: string }>("select workload_id from compute.attempt where id = $1", [
    orderId,
  ]);
  if (!known) return false;
  await tx.sql("select 1 from compute.workload where id = $1 for update", [known.workload_id]);
  const attempt = await tx.row(Attempt, "where t.id = $1 for update", [orderId]);
  if (!attempt || attempt.releasedAt || attemptMachine.decide(attempt.state, "confirm_gone") !== "gone") return false;
  await tx.sql("update compute.attempt set state = 'gone', gone_at = $2, released_at = $2 where id = $1", [
    orderId,
    now,
  ]);
  await closeIfGone(tx, attempt.placementId, now);
  await giveBack(tx, attempt.capacityId, attempt);
  tx.wake(topics.capacity);
  return true;
}
