import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { insertAccount, insertWorkload, TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { Account } from "../account/account.entity.ts";
import { computeEntities } from "../entities.ts";
import { charge, hold, monthToDateMicros, post, release } from "./ledger.commands.ts";

let database: TestDatabase;
let workloadId: string;
const BEFORE = new Date("2026-03-31T23:59:59.990Z");
const AFTER = new Date("2026-04-01T00:00:00.010Z");

beforeAll(async () => {
  database = await testDatabase(computeEntities);
});
afterAll(() => database.close());
beforeEach(async () => {
  await database.db.sql("truncate compute.account, compute.workload");
  await insertAccount(database.db, BEFORE, { balanceMicros: 10_000n, monthlyCapMicros: 1_000n });
  workloadId = (await insertWorkload(database.db, BEFORE, { maxCostMicros: 5_000n })).workloadId;
});

const account = async () => (await database.db.row(Account, "where t.id = $1", [TENANT]))!;
const spend = (micros: bigint, now: Date) => database.db.command((tx) => charge(tx, TENANT, workloadId, micros, now));
const reserve = (micros: bigint, now: Date) => database.db.command((tx) => hold(tx, TENANT, workloadId, micros, now));

test("a new month begins with nothing spent", async () => {
  await spend(900n, BEFORE);
  expect(await reserve(101n, BEFORE)).toBe("monthly_cap");
  expect(await reserve(101n, AFTER)).toBe("held");
  await spend(50n, AFTER);
  expect(monthToDateMicros(await account(), AFTER)).toBe(50n);
});

test("a charge that another process dates before midnight does not wipe the month that has begun", async () => {
  await spend(900n, AFTER);
  await spend(50n, BEFORE);
  expect(monthToDateMicros(await account(), AFTER)).toBe(950n);
  expect(await reserve(51n, AFTER)).toBe("monthly_cap");
  expect(await reserve(50n, AFTER)).toBe("held");
});

test("holds at once never add up to more than the cap, the credits or the workload's own limit", async () => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => reserve(300n, AFTER)));
  expect(answers.filter((a) => a === "held")).toHaveLength(3);
  expect((await account()).heldMicros).toBe(900n);
  await database.db.command((tx) => release(tx, TENANT, workloadId, 900n, AFTER));
  expect((await account()).heldMicros).toBe(0n);
});

test("a hold that the workload's own limit refuses takes nothing", async () => {
  expect(await reserve(5_001n, AFTER)).toBe("workload_budget");
  expect((await account()).heldMicros).toBe(0n);
});

test("sides that do not cancel out are not posted", async () => {
  const sides = [{ account: "customer_credit", entryType: "settle_close", debitMicros: 1n }] as const;
  const posting = database.db.command((tx) => post(tx, TENANT, workloadId, "plc_x", sides, AFTER));
  await expect(posting).rejects.toThrow("out of balance");
});
