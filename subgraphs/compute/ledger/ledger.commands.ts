import type { Tx } from "../../../infra/db/database.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import type { Micros } from "../../../infra/kernel/micros.ts";
import type { Account } from "../account/account.entity.ts";
import type { LedgerAccount } from "./ledger-entry.entity.ts";

/**
 * Money commands: ports of other commands, run in the caller's transaction. The account's row is the hottest of a team:
 * call these last in a command. A hold is `account.held`, mirrored by `workload.held` and `placement.held`.
 */

/** First instant of the UTC month of `now`. */
export function monthStart(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1));
}

/**
 * SQL: what an account `a` has spent in the month that begins at the parameter. The clocks of two processes differ around
 * midnight, so a month that another one has begun already counts as this one, and never falls back to the old.
 */
export function monthSpendSql(parameter: string): string {
  return `(case when a.month_start >= ${parameter} then a.month_spend_micros else 0 end)`;
}

/** What an account has spent in the month of `now`. */
export function monthToDateMicros(account: Pick<Account, "monthStart" | "monthSpendMicros">, now: Date): Micros {
  return account.monthStart >= monthStart(now) ? account.monthSpendMicros : 0n;
}

/** Why a hold was not given. */
export type HoldRefusal = "payment_method_required" | "insufficient_credit" | "monthly_cap" | "workload_budget";

/**
 * Reserves `micros` for a workload, all or nothing: credits, monthly cap and the workload's own limit are checked in the
 * statements that take them, so concurrent holds never add up to more.
 */
export async function hold(
  tx: Tx,
  tenantId: string,
  workloadId: string,
  micros: Micros,
  now: Date,
): Promise<"held" | HoldRefusal> {
  const [took] = await tx.sql<{ own: boolean; taken: boolean }>(HOLD, [
    ...[workloadId, micros, tenantId, now],
    monthStart(now),
  ]);
  if (!took!.own) return "workload_budget";
  if (took!.taken) return "held";
  await tx.sql("update compute.workload set held_micros = held_micros - $2 where id = $1", [workloadId, micros]);
  return whyRefused(tx, tenantId, micros);
}

/** The workload's row first, then the account's: `$1` workload, `$2` micros, `$3` tenant, `$4` now, `$5` start of the month. */
const HOLD = `with own as (
    update compute.workload set held_micros = held_micros + $2
    where id = $1 and (max_cost_micros is null or spend_micros + held_micros + $2 <= max_cost_micros) returning id),
  taken as (
    update compute.account a set held_micros = held_micros + $2, updated_at = $4
    where id = $3 and exists (select 1 from own) and payment_method and balance_micros - held_micros >= $2
      and (monthly_cap_micros is null or monthly_cap_micros - ${monthSpendSql("$5")} - held_micros >= $2) returning id)
  select exists (select 1 from own) as own, exists (select 1 from taken) as taken`;

async function whyRefused(tx: Tx, tenantId: string, micros: Micros): Promise<HoldRefusal> {
  const [account] = await tx.sql<{ payment_method: boolean; credit: bigint }>(
    "select payment_method, balance_micros - held_micros as credit from compute.account where id = $1",
    [tenantId],
  );
  if (!account?.payment_method) return "payment_method_required";
  return account.credit < micros ? "insufficient_credit" : "monthly_cap";
}

/** Gives a hold back, whole or in part. */
export async function release(tx: Tx, tenantId: string, workloadId: string, micros: Micros, now: Date): Promise<void> {
  if (micros === 0n) return;
  await tx.sql("update compute.workload set held_micros = held_micros - $2 where id = $1", [workloadId, micros]);
  await tx.sql("update compute.account set held_micros = held_micros - $2, updated_at = $3 where id = $1", [
    tenantId,
    micros,
    now,
  ]);
}

/** One side of a posting. */
export interface Side {
  account: LedgerAccount;
  entryType: string;
  debitMicros?: Micros;
  creditMicros?: Micros;
  evidence?: Record<string, unknown>;
}

/** Writes a posting whose sides must cancel out. Returns its correlation id. */
export async function post(
  tx: Tx,
  tenantId: string,
  subjectId: string,
  correlationId: string,
  sides: readonly Side[],
  now: Date,
): Promise<void> {
  const sum = sides.reduce((total, s) => total + (s.creditMicros ?? 0n) - (s.debitMicros ?? 0n), 0n);
  if (sum !== 0n) throw new Error(`a posting for ${subjectId} is out of balance by ${sum} micros`);
  for (const side of sides) {
    await tx.sql(
      `insert into compute.ledger_entry (id, tenant_id, subject_id, correlation_id, account, entry_type, debit_micros, credit_micros, evidence, created_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
      [
        newId("ledgerEntry", now),
        tenantId,
        subjectId,
        correlationId,
        side.account,
        side.entryType,
        side.debitMicros ?? 0n,
        side.creditMicros ?? 0n,
        side.evidence ? JSON.stringify(side.evidence) : null,
        now,
      ],
    );
  }
}

/** Takes a posted charge from the account: credits go down, the month's spend goes up. */
export async function charge(tx: Tx, tenantId: string, workloadId: string, micros: Micros, now: Date): Promise<void> {
  await tx.sql(
    "update compute.workload set spend_micros = spend_micros + $2, updated_at = greatest(updated_at, $3) where id = $1",
    [workloadId, micros, now],
  );
  await tx.sql(
    `update compute.account a set balance_micros = balance_micros - $2, updated_at = $3,
       month_spend_micros = ${monthSpendSql("$4")} + $2, month_start = greatest(month_start, $4)
     where id = $1`,
    [tenantId, micros, now, monthStart(now)],
  );
}

/** Sum of all entries of a tenant (or of everybody), credits less debits: zero, or the books are wrong. */
export async function trialBalance(tx: Pick<Tx, "sql">, tenantId: string | null): Promise<Micros> {
  const [row] = await tx.sql<{ balance: bigint | null }>(
    "select (sum(credit_micros) - sum(debit_micros))::bigint as balance from compute.ledger_entry where $1::text is null or tenant_id = $1",
    [tenantId],
  );
  return row?.balance ?? 0n;
}
