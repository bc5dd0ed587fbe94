import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { LIMITS } from "../kernel/limits.ts";
import { warnOfClockDifference } from "./clock-difference.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase([]);
}, 60_000);
afterAll(() => database?.close());

/** Asks as a machine would whose clock is ahead by so much. */
async function asked(aheadMs: number) {
  const warnings: { aheadMs: number }[] = [];
  const logger = { warn: (fields: { aheadMs: number }) => warnings.push(fields) } as never;
  const clock = { now: () => new Date(Date.now() + aheadMs) };
  return { toldMs: await warnOfClockDifference(database.db, clock, logger), warnings };
}

test("a clock like the database server's is not worth a word", async () => {
  expect(await asked(0)).toEqual({ toldMs: 0, warnings: [] });
});

test.each([-1, 1])("a clock that is off by as much as two may be apart is told of (%i)", async (sign) => {
  const { toldMs, warnings } = await asked(sign * LIMITS.clockSkewMs);
  expect(warnings).toEqual([{ aheadMs: toldMs }]);
  expect(Math.sign(toldMs)).toBe(sign);
  expect(Math.abs(toldMs)).toBeLessThanOrEqual(LIMITS.clockSkewMs);
});

test("an answer that is slow makes no clock look wrong", async () => {
  let nowMs = Date.now() - LIMITS.clockSkewMs;
  const clock = {
    now: () => {
      const now = new Date(nowMs);
      nowMs += 2 * LIMITS.clockSkewMs;
      return now;
    },
  };
  const logger = { warn: () => expect.unreachable() } as never;
  expect(await warnOfClockDifference(database.db, clock, logger)).toBe(0);
});
