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
  if (!attempt || !(await markGone(tx, attempt, now))) return false;
  await giveCapacityBack(tx, attempt);
  return true;
}

/**
 * Writes down that a locked attempt is gone; false when it has not ended or this was done before. Whoever calls it gives
 * the capacity back, as late as possible: many commands want that row.
 */
export async function markGone(tx: Tx, attempt: Attempt, now: Date): Promise<boolean> {
  if (attempt.releasedAt || attemptMachine.decide(attempt.state, "confirm_gone") !== "gone") return false;
  await tx.sql("update compute.attempt set state = 'gone', gone_at = $2, released_at = $2 where id = $1", [
    attempt.id,
    now,
  ]);
  await closeIfGone(tx, attempt.placementId, now);
  return true;
}

/** What `markGone` said is gone takes no room any more, which waiting stages want to know. */
export async function giveCapacityBack(tx: Tx, attempt: Attempt): Promise<void> {
  await giveBack(tx, attempt.capacityId, attempt);
  tx.wake(topics.capacity);
}
