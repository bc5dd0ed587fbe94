import type { Database, Queryer, Tx } from "../../../infra/db/database.ts";
import { forJob } from "../../../infra/db/job-bounds.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { MICROS_PER_USD, type Micros } from "../../../infra/kernel/micros.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { monthStart, post } from "../ledger/ledger.commands.ts";
import { Account } from "./account.entity.ts";
import { ACCOUNT } from "./account.refusals.ts";

/** Most that is granted at once: a typing error is more likely than a larger wish. */
const MOST_GRANTED = 1_000_000_000n * MICROS_PER_USD;
/** Amounts above this lose digits on the wire. */
const HIGHEST_CAP = 2n ** 53n;
const MOST_RUNS = 1_000_000;

export interface NewAccount {
  teamId: string;
  /** Starter credits; none when zero. */
  creditMicros: Micros;
  paymentMethod: boolean;
  concurrentRunsLimit: number;
}

/** Opens a team's account in another command's transaction; a team that has one keeps it. True when it was opened. */
export async function openAccount(tx: Tx, account: NewAccount, now: Date): Promise<boolean> {
  const opened = await tx.sql(
    `insert into compute.account (id, balance_micros, held_micros, monthly_cap_micros, month_spend_micros, month_start,
       payment_method, concurrent_runs_limit, active_runs, books_balanced, created_at, updated_at)
     values ($1, 0, 0, null, 0, $2, $3, $4, 0, true, $5, $5) on conflict (id) do nothing returning id`,
    [account.teamId, monthStart(now), account.paymentMethod, account.concurrentRunsLimit, now],
  );
  if (opened.length === 0) return false;
  if (account.creditMicros > 0n) await credit(tx, account.teamId, account.creditMicros, "starter credits", now);
  return true;
}

/** Gives a team credits. Every call gives more: it is for operators and administrators, who see what they did. */
export async function grantCredit(
  db: Database,
  grant: { teamId: string; micros: Micros; note: string },
  now: Date,
): Promise<Account> {
  const { teamId, micros, note } = grant;
  if (micros <= 0n || micros > MOST_GRANTED) throw new Refused(ACCOUNT.invalid_amount, { field: "/amountUsd" });
  return db.command(async (tx) => {
    await requireAccount(tx, teamId);
    await credit(tx, teamId, micros, note, now);
    return requireAccount(tx, teamId);
  });
}

async function credit(tx: Tx, teamId: string, micros: Micros, note: string, now: Date): Promise<void> {
  const evidence = { kind: "credit_grant", note };
  await post(
    tx,
    teamId,
    teamId,
    newId("ledgerEntry", now),
    [
      { account: "granted_credit", entryType: "credit_grant", debitMicros: micros, evidence },
      { account: "customer_credit", entryType: "credit_grant", creditMicros: micros, evidence },
    ],
    now,
  );
  await tx.sql("update compute.account set balance_micros = balance_micros + $2, updated_at = $3 where id = $1", [
    teamId,
    micros,
    now,
  ]);
}

/** What of an account can be set; absent members stay as they are. */
export interface AccountLimits {
  paymentMethod?: boolean;
  /** Null for no cap. What is reserved already stays reserved. */
  monthlyCapMicros?: Micros | null;
  concurrentRunsLimit?: number;
}

/** Sets a team's limits. Work that was authorised before goes on. */
export async function setLimits(db: Database, teamId: string, limits: AccountLimits, now: Date): Promise<Account> {
  const { paymentMethod, monthlyCapMicros: cap, concurrentRunsLimit: runs } = limits;
  if (cap !== undefined && cap !== null && (cap < 0n || cap > HIGHEST_CAP))
    throw new Refused(ACCOUNT.invalid_amount, { field: "/monthlyCapUsd" });
  if (runs !== undefined && !(Number.isInteger(runs) && runs >= 0 && runs <= MOST_RUNS))
    throw new Refused(ACCOUNT.invalid_concurrent_runs_limit, { field: "/concurrentRunsLimit" });
  return db.command(async (tx) => {
    await requireAccount(tx, teamId);
    await tx.sql(
      `update compute.account set payment_method = coalesce($2, payment_method),
         monthly_cap_micros = case when $3 then $4 else monthly_cap_micros end,
         concurrent_runs_limit = coalesce($5, concurrent_runs_limit), updated_at = $6
       where id = $1`,
      [teamId, paymentMethod ?? null, cap !== undefined, cap ?? null, runs ?? null, now],
    );
    return requireAccount(tx, teamId);
  });
}

/**
 * Compares the books with the account, and keeps the team from admitting more while they differ. A reconciler runs it.
 * True when all entries cancel out and the credits are what the entries say. Adding up a long ledger takes seconds, so it
 * is done under no lock, and again under the account's only when what it found differs from what is noted.
 */
export async function auditBooks(db: Database, teamId: string): Promise<boolean> {
  // In a command for a connection of its own: statements that leave together come back in order.
  const { balanced, noted } = await db.command((tx) => compareBooks(tx, teamId));
  if (balanced === noted) return balanced;
  return db.command(async (tx) => {
    await tx.sql("select 1 from compute.account where id = $1 for update", [teamId]);
    const books = await compareBooks(tx, teamId);
    await tx.sql("update compute.account set books_balanced = $2 where id = $1", [teamId, books.balanced]);
    return books.balanced;
  }, forJob(teamId));
}

interface Books {
  balanced: boolean;
  /** Whether the account says so. */
  noted: boolean;
}

/** One statement, thus one snapshot: a posting and what it does to the account are seen together or not at all. */
async function compareBooks(tx: Tx, teamId: string): Promise<Books> {
  const [books] = await tx.sql<Books>(
    `select a.books_balanced as noted, e.rest = 0 and e.credits = a.balance_micros as balanced
     from compute.account a cross join lateral (
       select coalesce(sum(credit_micros) - sum(debit_micros), 0) as rest,
         coalesce(sum(credit_micros - debit_micros) filter (where account = 'customer_credit'), 0) as credits
       from compute.ledger_entry where tenant_id = a.id) e
     where a.id = $1`,
    [teamId],
  );
  if (!books) throw new Refused(ACCOUNT.account_not_found);
  return books;
}

async function requireAccount(q: Queryer, teamId: string): Promise<Account> {
  const account = await q.row(Account, "where t.id = $1", [teamId]);
  if (!account) throw new Refused(ACCOUNT.account_not_found);
  return account;
}
