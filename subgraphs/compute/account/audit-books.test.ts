import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { computeEntities } from "../entities.ts";
import { auditBooks, grantCredit, openAccount } from "./account.commands.ts";

const NOW = new Date("2026-03-01T00:00:00Z");
let database: TestDatabase;
/** Whoever holds rows. */
let holder: pg.Client;
beforeAll(async () => {
  database = await testDatabase(computeEntities);
  holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
}, 60_000);
afterAll(async () => {
  await holder.end();
  await database.close();
});
beforeEach(async () => {
  const { db } = database;
  await db.sql("truncate compute.account, compute.ledger_entry");
  const account = { teamId: TENANT, creditMicros: 5_000_000n, paymentMethod: true, concurrentRunsLimit: 3 };
  await db.command((tx) => openAccount(tx, account, NOW));
});

const noted = async () => (await database.db.sql("select books_balanced as noted from compute.account"))[0];

/** Does it while somebody holds the team's account. */
async function whileHeld<T>(work: () => Promise<T>): Promise<T> {
  await holder.query("begin; select 1 from compute.account for update");
  try {
    return await work();
  } finally {
    await holder.query("rollback");
  }
}

test("books that are what the account says are added up while somebody holds the account", async () => {
  expect(await whileHeld(() => auditBooks(database.db, TENANT))).toBe(true);
  await database.db.sql("update compute.account set balance_micros = 0, books_balanced = false");
  expect(await whileHeld(() => auditBooks(database.db, TENANT))).toBe(false);
});

test("nobody waits for an audit that finds nothing new, however long it adds up", async () => {
  await holder.query("begin; lock table compute.ledger_entry in access exclusive mode");
  const audit = auditBooks(database.db, TENANT);
  const adding =
    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%compute.ledger_entry%'";
  await expect.poll(() => database.db.sql(adding)).toHaveLength(1);
  await database.db.sql("update compute.account set updated_at = now()");
  await holder.query("rollback");
  expect(await audit).toBe(true);
}, 20_000);

test("a difference is noted under the account's lock only, and so is its end", async () => {
  const { db } = database;
  await db.sql("update compute.account set balance_micros = balance_micros + 1");
  await expect(whileHeld(() => auditBooks(db, TENANT))).rejects.toMatchObject({ code: "55P03" });
  expect(await noted()).toEqual({ noted: true });
  // What was held is tried again a while later at the earliest.
  await expect.poll(() => auditBooks(db, TENANT).catch(() => null), { timeout: 10_000 }).toBe(false);
  expect(await noted()).toEqual({ noted: false });
  await db.sql("update compute.account set balance_micros = balance_micros - 1");
  expect(await auditBooks(db, TENANT)).toBe(true);
  expect(await noted()).toEqual({ noted: true });
}, 20_000);

test("entries that do not cancel out are a difference, too", async () => {
  await database.db.sql("update compute.ledger_entry set debit_micros = 0 where account = 'granted_credit'");
  expect(await auditBooks(database.db, TENANT)).toBe(false);
});

test("an audit amid postings sees each of them whole", async () => {
  const { db } = database;
  const grants = Array.from({ length: 40 }, () => grantCredit(db, { teamId: TENANT, micros: 7n, note: "" }, NOW));
  const audits = Array.from({ length: 40 }, () => auditBooks(db, TENANT));
  expect(new Set(await Promise.all(audits))).toEqual(new Set([true]));
  await Promise.all(grants);
  expect(await auditBooks(db, TENANT)).toBe(true);
}, 20_000);

test("a team without an account has no books", async () => {
  await expect(auditBooks(database.db, "team_unknown")).rejects.toMatchObject({ kind: { code: "account_not_found" } });
});
