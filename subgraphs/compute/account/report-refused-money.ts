import type { Database } from "../../../infra/db/database.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import type { Refused } from "../../../infra/kernel/refusal.ts";
import { ACCOUNT } from "./account.refusals.ts";

/**
 * Tells the team's account stream that work was refused for want of money; nothing for other refusals, nor where only the
 * work's own limit was too small. In a transaction of its own: the refused command has left nothing.
 */
export async function reportRefusedMoney(db: Database, tenantId: string, refused: Refused, now: Date): Promise<void> {
  const type = typeOf(refused);
  if (!type) return;
  const payload = { code: refused.kind.code, ...refused.detail.extra };
  await db.command((tx) => tx.offer({ tenantId, eventId: newId("event", now), type, payload, now }));
}

function typeOf({ kind, detail }: Refused): "account.spend_cap_reached" | "account.payment_required" | null {
  if (kind === ACCOUNT.payment_method_required) return "account.payment_required";
  if (kind !== ACCOUNT.budget_exceeded || detail.field !== undefined) return null;
  return capDecides(detail.extra ?? {}) ? "account.spend_cap_reached" : "account.payment_required";
}

/** Whether the monthly cap, and not the credits, leaves no more than the refusal's headroom. */
function capDecides(numbers: Readonly<Record<string, unknown>>): boolean {
  const micros = (name: string) => Math.round(Number(numbers[name] ?? 0) * 1_000_000);
  if (numbers.monthly_spend_cap_usd === undefined) return false;
  const left =
    micros("monthly_spend_cap_usd") -
    micros("month_to_date_usd") -
    micros("accruing_usd") -
    micros("in_flight_committed_usd");
  return Math.max(left, 0) <= micros("remaining_headroom_usd");
}
