import fc from "fast-check";
import pino from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { Database } from "../../infra/db/database.ts";
import { migrate } from "../../infra/db/migrate.ts";
import { FakeClock, systemClock } from "../../infra/kernel/clock.ts";
import { openPostgresRateCounts, openRedisRateCounts, type RateCounts } from "../../infra/live/rate-counts.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { emptyDatabase } from "../../tests/support/database.ts";
import { redisMissing, testRedis } from "../../tests/support/redis.ts";
import { sharedRateLimit } from "./shared-rate-limit.ts";

const log = pino({ level: "silent" });

/** How many of `asked` requests, spread over the gateways, may pass at once. */
async function passed(gateways: readonly { consume(key: string): Promise<number> }[], asked: number, key = "key_1") {
  const waits = await Promise.all(
    Array.from({ length: asked }, (_, index) => gateways[index % gateways.length]!.consume(key)),
  );
  return waits.filter((waitMs) => waitMs === 0).length;
}

test("gateways together never let more pass in a second than the limit, and all of it when they may", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 200 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 0, max: 800 }),
      async (perSecond, count, asked) => {
        const clock = new FakeClock(new Date(0));
        const counts = memoryCounts(clock);
        const gateways = Array.from({ length: count }, () => sharedRateLimit({ perSecond, counts, clock, log }));
        const first = await passed(gateways, asked);
        expect(first).toBeLessThanOrEqual(Math.min(asked, perSecond));
        if (count === 1) expect(first).toBe(Math.min(asked, perSecond));
        else expect(first).toBeGreaterThanOrEqual(Math.min(asked, perSecond) - count * Math.max(1, perSecond / 20));
        clock.advance(1_000);
        expect(await passed(gateways, 1)).toBe(1);
      },
    ),
    { numRuns: 200 },
  );
});

test("a refusal says how long to wait, and asks the store no more until then", async () => {
  const clock = new FakeClock(new Date(0));
  const counts = memoryCounts(clock);
  const gateway = sharedRateLimit({ perSecond: 2, counts, clock, log });
  expect(await passed([gateway], 2)).toBe(2);
  clock.advance(400);
  expect(await gateway.consume("key_1")).toBe(600);
  const { trips } = counts;
  expect(await gateway.consume("key_1")).toBe(600);
  expect(counts.trips).toBe(trips);
  clock.advance(600);
  expect(await gateway.consume("key_1")).toBe(0);
});

test("without its store each gateway holds the limit by itself, and shares it again when the store is back", async () => {
  const clock = new FakeClock(new Date(0));
  const counts = memoryCounts(clock);
  const gateways = [1, 2].map(() => sharedRateLimit({ perSecond: 10, counts, clock, log }));
  counts.down = true;
  expect(await passed(gateways, 100)).toBe(20);
  counts.down = false;
  clock.advance(1_000);
  expect(await passed(gateways, 100)).toBe(10);
});

describe.each([
  { store: "PostgreSQL", missing: null },
  { store: "Redis", missing: redisMissing() },
])("counts in $store", ({ store, missing }) => {
  test("are shared by gateways, kept apart by key, and begin anew each second", { timeout: 40_000 }, async ({
    skip,
  }) => {
    if (missing) return skip(missing);
    const [one, other] = store === "Redis" ? await inRedis() : await inPostgres();
    const gateways = [one!, other!].map((counts) =>
      sharedRateLimit({ perSecond: 200, counts, clock: systemClock, log }),
    );
    // Where the machine is so slow that a second goes by meanwhile, another key shows it.
    let tries = 0;
    const within = () => passed(gateways, 1_000, `key_${++tries}`);
    await expect.poll(within, { timeout: 20_000 }).toBe(200);
    expect(await passed(gateways, 10, "another")).toBe(10);
    await expect.poll(() => passed(gateways, 1, `key_${tries}`), { timeout: 5_000 }).toBe(1);
  });
});

test("a Redis that has died lets requests through, counted by the gateway", async ({ skip }) => {
  const missing = redisMissing();
  if (missing) return skip(missing);
  const redis = await testRedis();
  onTestFinished(() => redis.close());
  const counts = openRedisRateCounts(redis.url, createLogger({ level: "silent", role: "test" }));
  onTestFinished(() => counts.close());
  const gateway = sharedRateLimit({ perSecond: 20, counts, clock: systemClock, log });
  await expect.poll(() => counts.add("key_0", 1).catch(() => null)).not.toBeNull();
  await redis.kill();
  expect(await passed([gateway], 100)).toBe(20);
});

interface MemoryCounts extends Pick<RateCounts, "add"> {
  trips: number;
  down: boolean;
}

/** A store in this process, on the test's clock. */
function memoryCounts(clock: FakeClock): MemoryCounts {
  const seconds = new Map<string, { points: number; endsAtMs: number }>();
  return {
    trips: 0,
    down: false,
    async add(key, points) {
      this.trips++;
      if (this.down) throw new Error("down");
      const nowMs = clock.monotonicMs();
      const known = seconds.get(key);
      const second = known && known.endsAtMs > nowMs ? known : { points: 0, endsAtMs: nowMs + 1_000 };
      second.points += points;
      seconds.set(key, second);
      return { points: second.points, endsInMs: second.endsAtMs - nowMs };
    },
  };
}

async function inRedis(): Promise<RateCounts[]> {
  const redis = await testRedis();
  onTestFinished(() => redis.close());
  const logger = createLogger({ level: "silent", role: "test" });
  const both = [1, 2].map(() => openRedisRateCounts(redis.url, logger));
  onTestFinished(async () => void (await Promise.all(both.map((counts) => counts.close()))));
  // A connection that is not there yet counts as a store that is down.
  for (const counts of both) await expect.poll(() => counts.add("warm", 1).catch(() => null)).not.toBeNull();
  return both;
}

async function inPostgres(): Promise<RateCounts[]> {
  const { url, close } = await emptyDatabase();
  onTestFinished(close);
  await migrate(url);
  const databases = await Promise.all([1, 2].map(() => Database.open({ url, entities: [], poolSize: 4 })));
  onTestFinished(async () => void (await Promise.all(databases.map((db) => db.close()))));
  return Promise.all(databases.map((db) => openPostgresRateCounts(db)));
}
