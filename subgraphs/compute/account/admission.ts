import { type Database, type Queryer, sqlState, type Tx } from "../../../infra/db/database.ts";
import { isWaitForOthersOver } from "../../../infra/db/unavailable.ts";
import { lesserMicros, type Micros, toUsd } from "../../../infra/kernel/micros.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { monthSpendSql, monthStart, monthToDateMicros } from "../ledger/ledger.commands.ts";
import { cappedCharge, chargeFor } from "../ledger/price.ts";
import { Account } from "./account.entity.ts";
import { ACCOUNT } from "./account.refusals.ts";

/** After how long it is worth asking whether another workload has ended. */
const RUNS_RETRY_SECONDS = 5;

export interface Admission {
  tenantId: string;
  /** What the first window costs on the cheapest capacity that fits; zero when none fits now. */
  estimateMicros: Micros;
  /** The workload's own limit; null for none. */
  maxCostMicros: Micros | null;
  now: Date;
}

/** Nothing was written; `refusalOf` says why. */
class NotAdmitted extends Error {
  override readonly name = "NotAdmitted";
  readonly admission: Admission;

  constructor(admission: Admission) {
    super(`the account of ${admission.tenantId} lets nothing more in`);
    this.admission = admission;
  }
}

/** Runs a command that ends with `admit`; where that does not let it in, nothing is written and the refusal says why. */
export async function admitting<T>(db: Database, command: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await db.command(command);
  } catch (error) {
    throw error instanceof NotAdmitted ? await refusalOf(db, error.admission) : error;
  }
}

/** division_by_zero. */
const NOBODY = "22012";

/**
 * Lets one more workload in under the team's payment method, credits, monthly cap and number of unfinished workloads.
 * It reserves no money: placement does, at the price of what it chose. One statement decides, so that concurrent
 * admissions never add up to more. It is the last of a command, run by `admitting`, and fails when it lets nothing in, so
 * that the COMMIT can go with it: the account's row is a team's hottest, and is held no longer than the commit takes.
 *
 * `admitting` throws `payment_method_required`, `budget_exceeded` with its numbers, `too_many_runs`, or
 * `spend_check_unavailable` when spending cannot be measured.
 */
export async function admit(tx: Tx, admission: Admission): Promise<void> {
  if (ownLimitTooSmall(admission)) throw new NotAdmitted(admission);
  const { tenantId, now } = admission;
  await measured(async () => {
    try {
      await tx.sqlAndCommit(ADMIT, [tenantId, leastCredit(admission), monthStart(now)]);
    } catch (error) {
      throw sqlState(error) === NOBODY ? new NotAdmitted(admission) : error;
    }
  });
}

/**
 * SQL: whether an account `a` lets in so many more workloads, of which none needs more credit than `leastMicros`. It is
 * the same as to ask for one after the other: an admission takes no money, so only their number adds up.
 */
export function letsIn(sql: { count: string; leastMicros: string; monthStart: string }): string {
  return `a.books_balanced and a.payment_method and a.active_runs + ${sql.count} <= a.concurrent_runs_limit
      and a.balance_micros - a.held_micros >= ${sql.leastMicros}
      and (a.monthly_cap_micros is null
        or a.monthly_cap_micros - ${monthSpendSql(sql.monthStart)} - a.held_micros >= ${sql.leastMicros})`;
}

const ADMIT = `with admitted as (
    update compute.account a set active_runs = active_runs + 1
    where id = $1 and ${letsIn({ count: "1", leastMicros: "$2", monthStart: "$3" })}
    returning id)
  select 1 / count(*) from admitted`;

/** Work starts when its first window is paid for; a limit below that would only fail later. */
export function ownLimitTooSmall({
  maxCostMicros,
  estimateMicros,
}: Pick<Admission, "maxCostMicros" | "estimateMicros">): boolean {
  return maxCostMicros !== null && maxCostMicros < estimateMicros;
}

/** Nothing left is a refusal even where the price is not known yet. */
export function leastCredit({ estimateMicros }: Pick<Admission, "estimateMicros">): Micros {
  return estimateMicros > 0n ? estimateMicros : 1n;
}

/** A failing measurement admits nothing; what the database will retry by itself passes, and what waited in vain says so. */
async function measured<T>(measure: () => Promise<T>): Promise<T> {
  try {
    return await measure();
  } catch (error) {
    if (error instanceof NotAdmitted || ["40001", "40P01"].includes(sqlState(error) ?? "")) throw error;
    if (isWaitForOthersOver(error)) throw error;
    const refused = new Refused(ACCOUNT.spend_check_unavailable, { retryAfterSeconds: 1 });
    refused.cause = error;
    throw refused;
  }
}

/** Why the account did not let it in, by what stands there now. */
function refusalOf(q: Queryer, admission: Admission): Promise<Refused> {
  return measured(() => whyRefused(q, admission));
}

async function whyRefused(q: Queryer, admission: Admission): Promise<Refused> {
  const account = await q.row(Account, "where t.id = $1", [admission.tenantId]);
  if (!account?.paymentMethod) return new Refused(ACCOUNT.payment_method_required);
  if (!account.booksBalanced) return new Refused(ACCOUNT.spend_check_unavailable, { retryAfterSeconds: 1 });
  if (account.activeRuns >= account.concurrentRunsLimit)
    return new Refused(ACCOUNT.too_many_runs, {
      extra: { concurrent_runs_limit: account.concurrentRunsLimit, active_runs: account.activeRuns },
      retryAfterSeconds: RUNS_RETRY_SECONDS,
    });
  const extra = arithmetic(account, await accruing(q, admission), admission);
  if (!ownLimitTooSmall(admission)) return new Refused(ACCOUNT.budget_exceeded, { extra });
  return new Refused(ACCOUNT.budget_exceeded, {
    field: "/outcome/max_cost_usd",
    message: `The workload's limit does not cover the start of this work, which takes ${toUsd(admission.estimateMicros)} US dollars.`,
    fix: "Raise outcome.max_cost_usd.",
    extra,
  });
}

/** The numbers of a refused budget, in dollars. What is held pays for what accrues, so the two never count twice. */
function arithmetic(
  account: Account,
  accruingMicros: Micros,
  { estimateMicros, now }: Admission,
): Record<string, number> {
  const monthSpend = monthToDateMicros(account, now);
  const cap = account.monthlyCapMicros;
  const accrued = lesserMicros(accruingMicros, account.heldMicros);
  const free = account.balanceMicros - account.heldMicros;
  const headroom = cap === null ? free : lesserMicros(free, cap - monthSpend - account.heldMicros);
  return {
    ...(cap === null ? {} : { monthly_spend_cap_usd: toUsd(cap) }),
    month_to_date_usd: toUsd(monthSpend),
    estimated_cost_usd: toUsd(estimateMicros),
    accruing_usd: toUsd(accrued),
    in_flight_committed_usd: toUsd(account.heldMicros - accrued),
    remaining_headroom_usd: toUsd(headroom > 0n ? headroom : 0n),
  };
}

/** What has been used and not yet posted, over all of the team's work. */
async function accruing(q: Queryer, { tenantId, now }: Admission): Promise<Micros> {
  const open = await q.sql<{ rate: bigint; fee: number; held: bigint; started: Date; ran_ms: bigint | null }>(
    `select rate_micros_per_hour as rate, fee_basis_points as fee, held_micros as held, running_at as started, ran_ms
     from compute.placement where tenant_id = $1 and state in ('running', 'ended') and running_at is not null`,
    [tenantId],
  );
  return open.reduce((sum, p) => {
    const ms = p.ran_ms === null ? Math.max(0, now.getTime() - p.started.getTime()) : Number(p.ran_ms);
    const price = { rateMicrosPerHour: p.rate, feeBasisPoints: p.fee };
    return sum + cappedCharge(chargeFor(price, ms), p.held).totalMicros;
  }, 0n);
}
