import type { Tx } from "../../../infra/db/database.ts";
import { lesserMicros, type Micros, toUsd } from "../../../infra/kernel/micros.ts";
import type { Allowance } from "../../../infra/runner/protocol.ts";
import { hold, monthSpendSql, monthStart } from "../ledger/ledger.commands.ts";
import { chargeFor, microsFor, type Price, runMsFor } from "../ledger/price.ts";
import type { Placement } from "../placement/placement.entity.ts";
import type { ComputeSettings } from "../settings.ts";
import type { Workload } from "../workload/workload.entity.ts";
import { appendEvent } from "../workload/workload.transitions.ts";

/** What is charged for a placement's time. */
export function priceOf(placement: Pick<Placement, "rateMicrosPerHour" | "feeBasisPoints">): Price {
  return { rateMicrosPerHour: placement.rateMicrosPerHour, feeBasisPoints: placement.feeBasisPoints };
}

/** What the host may do until it hears again. */
export function allowanceOf(placement: Placement, workload: Workload, settings: ComputeSettings, now: Date): Allowance {
  return {
    want: placement.want,
    leaseMs: settings.leaseMs,
    fundedRunMs: runMsFor(priceOf(placement), placement.heldMicros),
    deadlineMs: workload.completeBy ? Math.max(0, workload.completeBy.getTime() - now.getTime()) : null,
  };
}

/** A host asks once per beat: money must last for two more beats, or it ends before anybody could add to it. */
const WINDOW_BEATS = 3;

/**
 * Reserves another window for a running generation once less than a lease is left, as much as limits and credits still
 * allow: a platform that is away for less than a lease costs no run its life, for want of money as little as for want of
 * a heartbeat. Nothing more to reserve is no error: the host stops by itself when the funded time is over. Returns what
 * the placement now holds.
 */
export async function extendFunding(
  tx: Tx,
  workload: Workload,
  placement: Placement,
  settings: ComputeSettings,
  now: Date,
): Promise<Micros> {
  const price = priceOf(placement);
  const fundedMs = runMsFor(price, placement.heldMicros);
  // Nothing more is charged once the command is over.
  if (fundedMs === null || !placement.runningAt || placement.ranMs !== null) return placement.heldMicros;
  const usedMs = usedMsOf(placement, now);
  const windowMs = Math.max(settings.firstWindowMs, WINDOW_BEATS * settings.heartbeatIntervalMs);
  const aheadMs = Math.max(windowMs / 2, settings.leaseMs);
  if (fundedMs - usedMs > aheadMs) return placement.heldMicros;
  const wanted = microsFor(price, usedMs + aheadMs + windowMs) - placement.heldMicros;
  const free = await freeToHold(tx, workload, now);
  const amount = lesserMicros(wanted, free);
  if (amount <= 0n) return placement.heldMicros;
  // The statement that takes it decides; a refusal here means that somebody else was faster, and the next beat asks again.
  if ((await hold(tx, workload.tenantId, workload.id, amount, now)) !== "held") return placement.heldMicros;
  const held = placement.heldMicros + amount;
  await tx.sql("update compute.placement set held_micros = $2 where id = $1", [placement.id, held]);
  return held;
}

/** Charged time so far: what the host measured once the command is over, and what has passed until then. */
function usedMsOf({ runningAt, ranMs }: Placement, now: Date): number {
  return ranMs ?? (runningAt ? Math.max(0, now.getTime() - runningAt.getTime()) : 0);
}

/**
 * True when money was not what a generation ended for although its funded time ran out: another window could have been
 * had, and the platform was not there to take it.
 */
export async function couldHaveGoneOn(
  tx: Tx,
  workload: Workload,
  placement: Placement,
  settings: ComputeSettings,
  now: Date,
): Promise<boolean> {
  return (await freeToHold(tx, workload, now)) >= microsFor(priceOf(placement), settings.firstWindowMs);
}

async function freeToHold(tx: Tx, workload: Workload, now: Date): Promise<Micros> {
  const [row] = await tx.sql<{ free: bigint | null }>(
    `select least(
       a.balance_micros - a.held_micros,
       case when a.monthly_cap_micros is null then null
            else a.monthly_cap_micros - ${monthSpendSql("$3")} - a.held_micros end,
       case when w.max_cost_micros is null then null else w.max_cost_micros - w.spend_micros - w.held_micros end) as free
     from compute.account a, compute.workload w where a.id = $1 and w.id = $2 and a.payment_method`,
    [workload.tenantId, workload.id, monthStart(now)],
  );
  return row?.free ?? 0n;
}

/** Shares of the workload's own limit at which its owner is warned, in percent. */
const WARN_AT_PERCENT = [50, 80, 95] as const;

/** Warns once for each share of the limit that the spending passes. */
export async function warnOfBudget(tx: Tx, workload: Workload, placement: Placement, now: Date): Promise<void> {
  const limit = workload.maxCostMicros;
  if (limit === null || !placement.runningAt) return;
  const accrued = chargeFor(priceOf(placement), usedMsOf(placement, now)).totalMicros;
  const spent = workload.spendMicros + lesserMicros(accrued, placement.heldMicros);
  const reached = WARN_AT_PERCENT.filter((p) => spent * 100n >= limit * BigInt(p)).at(-1) ?? 0;
  if (reached <= workload.budgetWarnedPercent) return;
  await tx.sql("update compute.workload set budget_warned_percent = $2 where id = $1", [workload.id, reached]);
  const payload = { spent_usd: toUsd(spent), max_cost_usd: toUsd(limit), fraction: reached / 100 };
  await appendEvent(tx, workload.id, "workload.budget_warning", payload, now);
}
