import type { Database, Tx } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { loseGeneration } from "../lifecycle/finish.commands.ts";
import type { ComputeSettings } from "../settings.ts";
import { failBoot } from "./boot.commands.ts";
import { lockAttempt } from "./lock-attempt.ts";
import type { Attempt, Placement } from "./placement.entity.ts";

/** Writes down that the supplier shows nothing of an order whose host was heard: it is looked at again after the grace. */
export async function noteGone(
  db: Pick<Database, "sql">,
  { tenantId, id: orderId }: Pick<Attempt, "tenantId" | "id">,
  now: Date,
): Promise<void> {
  await db.sql(
    `update compute.attempt a set gone_seen_at = $3, gone_seen_beat_at = p.last_beat_at, next_check_at = $4
       from compute.placement p
      where a.tenant_id = $1 and a.id = $2 and p.id = a.placement_id and p.order_id = a.id and a.state in ('booting', 'running')`,
    [tenantId, orderId, now, new Date(now.getTime() + LIMITS.goneToLostMs)],
  );
}

/**
 * Whether the host has beaten since its machine was seen gone. Beats carry the time of another process, whose clock may
 * be ahead or behind, so the last beat is compared with what was the last one then, and not with when that was.
 */
export function hasBeatenSince(
  { goneSeenBeatAt }: Pick<Attempt, "goneSeenBeatAt">,
  { lastBeatAt }: Pick<Placement, "lastBeatAt">,
): boolean {
  return lastBeatAt?.getTime() !== goneSeenBeatAt?.getTime();
}

/**
 * Ends what ran on a machine that its supplier has shown gone for `LIMITS.goneToLostMs`. Decided under the locks: a host
 * that was heard since, or an order that was seen again, ends nothing. False when nothing was ended.
 */
export async function loseIfStillGone(
  tx: Tx,
  orderId: string,
  settings: Pick<ComputeSettings, "offerQuarantineMs">,
  now: Date,
): Promise<boolean> {
  const locked = await lockAttempt(tx, orderId);
  if (!locked?.attempt.goneSeenAt || locked.placement.orderId !== orderId) return false;
  const { placement } = locked;
  const { goneSeenAt } = locked.attempt;
  if (hasBeatenSince(locked.attempt, placement) || now.getTime() - goneSeenAt.getTime() < LIMITS.goneToLostMs)
    return false;
  if (placement.state !== "running") {
    const message = "the machine was lost before the command ran";
    return failBoot(tx, { orderId, code: "supplier_lost_it", message, gone: true }, settings, now);
  }
  const trigger = placement.interruptTrigger ?? "host_lost";
  await loseGeneration(tx, { placementId: placement.id, trigger, now });
  return true;
}
