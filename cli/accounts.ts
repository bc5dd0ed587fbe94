import { fromUsdText, type Micros, toUsd } from "../infra/kernel/micros.ts";
import type { Settings } from "../infra/telemetry/environment.ts";
import { grantCredit, setLimits } from "../subgraphs/compute/account/account.commands.ts";
import { Account } from "../subgraphs/compute/account/account.entity.ts";
import { trialBalance } from "../subgraphs/compute/ledger/ledger.commands.ts";
import { ClientError } from "./client.ts";
import { teamOf, withDatabase } from "./operator-database.ts";

interface TeamOption {
  team?: string;
}

/** Prints a team's account. @throws ClientError when its books do not balance */
export function showAccount(settings: Settings, options: TeamOption): Promise<void> {
  return withDatabase(settings, async (db) => {
    const teamId = await teamOf(db, options.team);
    const account = await db.row(Account, "where t.id = $1", [teamId]);
    if (!account) throw new ClientError(`The team ${teamId} has no account yet: start the platform once.`);
    const balance = await trialBalance(db, teamId);
    print(account, balance);
    if (balance !== 0n)
      throw new ClientError(
        `The books of the team ${teamId} are out of balance: keep a back-up, and do not post by hand.`,
      );
  });
}

/** Grants credits, posted in the books. */
export function creditAccount(settings: Settings, usd: string, options: TeamOption & { note: string }): Promise<void> {
  return withDatabase(settings, async (db) => {
    const teamId = await teamOf(db, options.team);
    const account = await grantCredit(db, { teamId, micros: dollars(usd, "<usd>"), note: options.note }, new Date());
    print(account, await trialBalance(db, teamId));
  });
}

/** Sets limits; what is not named stays. */
export function setAccount(
  settings: Settings,
  options: TeamOption & { monthlyCap?: string; paymentMethod?: "on" | "off"; concurrentRuns?: number },
): Promise<void> {
  if ([options.monthlyCap, options.paymentMethod, options.concurrentRuns].every((value) => value === undefined))
    throw new ClientError("Say what to set: --monthly-cap, --payment-method or --concurrent-runs.");
  return withDatabase(settings, async (db) => {
    const teamId = await teamOf(db, options.team);
    const { monthlyCap, paymentMethod, concurrentRuns } = options;
    const account = await setLimits(
      db,
      teamId,
      {
        ...(monthlyCap === undefined
          ? {}
          : { monthlyCapMicros: monthlyCap === "none" ? null : dollars(monthlyCap, "--monthly-cap") }),
        ...(paymentMethod === undefined ? {} : { paymentMethod: paymentMethod === "on" }),
        ...(concurrentRuns === undefined ? {} : { concurrentRunsLimit: concurrentRuns }),
      },
      new Date(),
    );
    print(account, await trialBalance(db, teamId));
  });
}

function dollars(text: string, option: string): Micros {
  const micros = fromUsdText(text);
  if (micros === null) throw new ClientError(`${option} must be US dollars with at most six decimals, not "${text}".`);
  return micros;
}

function print(account: Account, balance: Micros): void {
  const rows: [string, string][] = [
    ["team", account.id],
    ["credits", `$${toUsd(account.balanceMicros)}`],
    ["held", `$${toUsd(account.heldMicros)}`],
    ["monthly cap", account.monthlyCapMicros === null ? "none" : `$${toUsd(account.monthlyCapMicros)}`],
    ["payment method", account.paymentMethod ? "on" : "off"],
    ["concurrent runs", String(account.concurrentRunsLimit)],
    ["books", balance === 0n ? "balanced" : `OUT OF BALANCE by ${balance} micros`],
  ];
  process.stdout.write(rows.map(([name, value]) => `${name.padEnd(16)} ${value}\n`).join(""));
}
