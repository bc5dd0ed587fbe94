import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type Clock, FakeClock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { openDiskStore } from "../../../infra/objects/disk-store.ts";
import type { ObjectStore } from "../../../infra/objects/object-store.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { computeEntities } from "../entities.ts";
import { collectResultBytes } from "./collect-result-bytes.ts";
import { holdResult, storeResult } from "./result-object.commands.ts";

const DAY_MS = 24 * 3_600_000;
const HOUR_MS = 3_600_000;
let database: TestDatabase;
let results: ObjectStore;
let clock: FakeClock;

beforeAll(async () => {
  database = await testDatabase(computeEntities);
});
afterAll(() => database.close());

beforeEach(async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-collect-"));
  results = await openDiskStore(path.join(folder, "results"));
  clock = new FakeClock(new Date().toISOString()); // stores tell the time by the machine's clock
  await database.db.sql("truncate compute.result_object");
  return () => rmSync(folder, { recursive: true });
});

const put = (text: string, at: Clock = clock) =>
  storeResult({ db: database.db, objects: results, clock: at }, Readable.from([Buffer.from(text)]), {
    maxBytes: 1_000,
  });

const stored = async () => (await results.list({ limit: 100 })).length;

test("a long list of objects is walked over many rounds", async () => {
  const names = await Promise.all(Array.from({ length: 9 }, (_, i) => put(`object ${i}`)));
  clock.advance(2 * DAY_MS);
  let removed = 0;
  let rounds = 0;
  for (let after: string | null = null; rounds === 0 || after; rounds++) {
    const collected = await collectResultBytes(
      { db: database.db, objects: results, clock },
      { after, limit: 2, unusedMs: DAY_MS },
    );
    removed += collected.removed;
    after = collected.after;
  }
  expect([removed, rounds]).toEqual([names.length, 5]);
});

test("a reference that is being written keeps its bytes; bytes that come later wait until they are gone", async () => {
  const object = await put("contended");
  clock.advance(2 * DAY_MS);
  const collect = (objects: Pick<ObjectStore, "remove">) =>
    collectResultBytes({ db: database.db, objects, clock }, { after: null, limit: 10, unusedMs: DAY_MS });
  await database.db.command(async (tx) => {
    expect(await holdResult(tx, object.sha256)).toBe(true);
    expect((await collect(results)).removed).toBe(0); // the row is held: it is passed by
  });
  let late = true;
  let again: Promise<{ sha256: string }> | null = null;
  const slow = {
    remove: async (sha256: string) => {
      late = await database.db.command((tx) => holdResult(tx, object.sha256));
      const waits = Promise.withResolvers<void>();
      const sleep = (ms: number) => {
        waits.resolve();
        return clock.sleep(ms);
      };
      again = put("contended", { now: () => clock.now(), monotonicMs: () => clock.monotonicMs(), sleep });
      await waits.promise;
      await results.remove(sha256);
    },
  };
  expect((await collect(slow)).removed).toBe(1);
  expect(late).toBe(false);
  await clock.advance(1_000);
  expect(await again).toMatchObject({ sha256: object.sha256 });
  expect(await results.has(object.sha256)).toBe(true);
});

test("bytes that went while whoever stored them was away are not referred to", async () => {
  const { sha256 } = await put("away for days");
  clock.advance(2 * DAY_MS);
  expect(
    (
      await collectResultBytes(
        { db: database.db, objects: results, clock },
        { after: null, limit: 10, unusedMs: DAY_MS },
      )
    ).removed,
  ).toBe(1);
  expect(await database.db.command((tx) => holdResult(tx, sha256))).toBe(false);
  expect(await stored()).toBe(0);
});

test.each(["set", "slept past"] as const)(
  "a removal lets go of what it has not touched when its clock was %s, for others take it for dead",
  async (how) => {
    await Promise.all(["first", "second"].map((text) => put(text)));
    clock.advance(2 * DAY_MS);
    const removed: string[] = [];
    const remove = async (sha256: string) => {
      removed.push(sha256);
      if (how === "set") clock.stepWall(HOUR_MS);
      else clock.advance(HOUR_MS);
    };
    await collectResultBytes(
      { db: database.db, objects: { remove }, clock },
      { after: null, limit: 10, unusedMs: DAY_MS },
    );
    const left = await database.db.sql("select removing_since from compute.result_object");
    expect([removed.length, left]).toEqual([1, [{ removing_since: null }]]);
  },
);

test("a removal that failed, or died, is over after its lease, for who removes or stores the bytes", async () => {
  const { sha256 } = await put("half removed");
  await clock.advance(2 * DAY_MS);
  const failing = {
    remove: async () => {
      throw new Error("the store is away");
    },
  };
  const collect = (objects: Pick<ObjectStore, "remove">) =>
    collectResultBytes({ db: database.db, objects, clock }, { after: null, limit: 10, unusedMs: DAY_MS });
  const die = () => database.db.sql("update compute.result_object set removing_since = $1", [clock.now()]);
  expect(await collect(failing)).toMatchObject({
    removed: 0,
    failures: [expect.objectContaining({ message: "the store is away" })],
  });
  expect(await database.db.command((tx) => holdResult(tx, sha256))).toBe(false); // it may be gone
  expect((await collect(results)).removed).toBe(0);
  await clock.advance(LIMITS.removalLeaseMs + 1);
  expect((await collect(results)).removed).toBe(1);
  expect(await stored()).toBe(0);

  await put("half removed");
  await clock.advance(2 * DAY_MS);
  await die();
  expect((await collect(results)).removed).toBe(0);
  await clock.advance(LIMITS.removalLeaseMs + 1);
  expect((await collect(results)).removed).toBe(1);

  await put("half removed");
  await clock.advance(2 * DAY_MS);
  await die();
  const diedAtMs = clock.monotonicMs();
  const sleep = (ms: number) => clock.advance(ms * 20);
  await put("half removed", { now: () => clock.now(), monotonicMs: () => clock.monotonicMs(), sleep });
  expect(clock.monotonicMs() - diedAtMs).toBeGreaterThanOrEqual(LIMITS.removalLeaseMs);
  expect((await collect(results)).removed).toBe(0);
  expect(await results.has(sha256)).toBe(true);
});

test("an object that cannot be removed keeps no other; a store that is away is left alone, and what was not touched is free", async () => {
  const objects = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => put(`object ${n}`)));
  const [stuck] = objects.map(({ sha256 }) => sha256).sort();
  clock.advance(2 * DAY_MS);
  const collect = (after: string | null, limit: number, isStuck: (sha256: string) => boolean) => {
    const remove = async (sha256: string) => {
      if (isStuck(sha256)) throw new Error("the store does not do it");
      await results.remove(sha256);
    };
    return collectResultBytes({ db: database.db, objects: { remove }, clock }, { after, limit, unusedMs: DAY_MS });
  };
  const { after, removed, failures } = await collect(null, 2, (sha256) => sha256 === stuck);
  expect([removed, failures.length]).toEqual([1, 1]);
  expect(after).not.toBe(null);
  expect((await collect(after, 10, () => true)).failures).toHaveLength(3);
  const marked = "select count(removing_since)::int as touched, count(*)::int as left from compute.result_object";
  expect(await database.db.sql(marked)).toEqual([{ touched: 4, left: 5 }]);
});
