import type { Tx } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { loseGeneration } from "../lifecycle/finish.commands.ts";
import type { ComputeSettings } from "../settings.ts";
import { failBoot } from "./boot.commands.ts";
import { lockAttempt } from "./lock-attempt.ts";

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
  const heard = placement.lastBeatAt !== null && placement.lastBeatAt > goneSeenAt;
  if (heard || now.getTime() - goneSeenAt.getTime() < LIMITS.goneToLostMs) return false;
  if (placement.state !== "running") {
    const message = "the machine was lost before the command ran";
    return failBoot(tx, { orderId, code: "supplier_lost_it", message, gone: true }, settings, now);
  }
  const trigger = placement.interruptTrigger ?? "host_lost";
  await loseGeneration(tx, { placementId: placement.id, trigger, now });
  return true;
}
