import { beforeEach, describe, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { redisMissing, type TestRedis, testRedis } from "../../tests/support/redis.ts";
import { holdJob } from "../../tests/support/worker-process.ts";
import { OutboxRow } from "../db/outbox.ts";
import { systemClock } from "../kernel/clock.ts";
import { createLogger } from "../telemetry/logger.ts";
import { type JobQueue, openQueue } from "./connection.ts";
import { defineJob } from "./define-job.ts";
import { DONE, implementJob, type JobImplementation } from "./implement-job.ts";
import { startWorkers, type Workers, type WorkersOptions } from "./workers.ts";

const logger = createLogger({ level: "silent", role: "test" });

interface Numbered {
  n: number;
}
const COUNT = defineJob<Numbered>({
  name: "test.count",
  queue: "test",
  concurrency: 4,
  timeoutMs: 30_000,
  attempts: 5,
});
const NARROW = defineJob<Numbered>({ ...COUNT, name: "test.narrow", concurrency: 1 });

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const ascending = (a: number, b: number) => a - b;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.each([
  { name: "PostgreSQL", withRedis: false, missing: null },
  { name: "Redis", withRedis: true, missing: redisMissing() },
])("workers of a queue in $name", ({ withRedis, missing }) => {
  let database: TestDatabase;
  let redis: TestRedis | null;
  let queue: JobQueue;

  const open = () => openQueue({ databaseUrl: database.url, redisUrl: redis?.url, logger });

  beforeEach(async ({ skip }) => {
    if (missing) skip(missing);
    database = await testDatabase([OutboxRow]);
    redis = withRedis ? await testRedis() : null;
    queue = await open();
    return async () => {
      await queue.close();
      await redis?.close();
      await database.close();
    };
  });

  const start = (jobs: readonly JobImplementation[], changes: Partial<WorkersOptions> = {}): Workers =>
    startWorkers(jobs, { queue, db: database.db, clock: systemClock, logger, random: () => 0, ...changes });

  const publish = (count: number, definition = COUNT) =>
    queue.publish(numbers(count).map((n) => ({ id: `${definition.name}-${n}`, definition, payload: { n } })));

  test("every published job runs once, no more at a time than its definition allows", async () => {
    const ran: number[] = [];
    let running = 0;
    let most = 0;
    const job = implementJob(COUNT, async ({ n }) => {
      most = Math.max(most, ++running);
      await pause(2);
      running--;
      ran.push(n);
      return DONE;
    });
    await publish(100);
    const workers = start([job]);
    await expect.poll(() => ran.length, { timeout: 15_000 }).toBe(100);
    await workers.close();
    expect(ran.sort(ascending)).toEqual(numbers(100));
    expect(most).toBe(4);
  });

  test("jobs that share a queue keep each to its own limit", async () => {
    const most = { wide: 0, narrow: 0 };
    const running = { wide: 0, narrow: 0 };
    let ran = 0;
    const body = (kind: "wide" | "narrow") => async () => {
      most[kind] = Math.max(most[kind], ++running[kind]);
      await pause(5);
      running[kind]--;
      ran++;
      return DONE;
    };
    await publish(20, COUNT);
    await publish(10, NARROW);
    const workers = start([implementJob(COUNT, body("wide")), implementJob(NARROW, body("narrow"))]);
    await expect.poll(() => ran, { timeout: 15_000 }).toBe(30);
    await workers.close();
    expect(most.narrow).toBe(1);
    expect(most.wide).toBeLessThanOrEqual(4);
  });

  test("a job that fails runs again after a while, and its attempts are counted", async () => {
    const attempts: number[] = [];
    const reports: string[] = [];
    const job = implementJob(COUNT, async (_, { attempt }) => {
      attempts.push(attempt);
      if (attempt < 3) throw new Error("not yet");
      return DONE;
    });
    await publish(1);
    const workers = start([job], { onRun: (run) => reports.push(run.outcome) });
    await expect.poll(() => reports, { timeout: 15_000 }).toEqual(["failed", "failed", "done"]);
    await workers.close();
    expect(attempts).toEqual([1, 2, 3]);
  });

  test("a job runs no more often than its attempts", async () => {
    const reports: string[] = [];
    const twice = { ...COUNT, attempts: 2 };
    const job = implementJob(twice, async () => ({ outcome: "retry", reason: "never" }));
    await publish(1, twice);
    const workers = start([job], { onRun: (run) => reports.push(run.outcome) });
    await expect.poll(() => reports, { timeout: 15_000 }).toEqual(["retry", "gave_up"]);
    await pause(1_000); // longer than the wait before a third run
    await workers.close();
    expect(reports).toHaveLength(2);
  });

  test("closing waits for runs in progress and starts no more", async () => {
    const ran: number[] = [];
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const job = implementJob(NARROW, async ({ n }) => {
      ran.push(n);
      await released;
      return DONE;
    });
    await publish(3, NARROW);
    const workers = start([job]);
    await expect.poll(() => ran.length).toBe(1);
    const closed = workers.close();
    expect(workers.running).toBe(1);
    release();
    await closed;
    expect(workers.running).toBe(0);
    expect(ran).toHaveLength(1);
  });

  test("jobs that wait for a slot when the drain begins go back to the queue", async () => {
    const ran: string[] = [];
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = implementJob(NARROW, async ({ n }) => {
      ran.push(`narrow ${n}`);
      await released;
      return DONE;
    });
    await publish(3, NARROW);
    const workers = start([slow, implementJob(COUNT, async () => DONE)]);
    await expect.poll(() => workers.running).toBe(3);
    const closed = workers.close();
    release();
    await closed;
    expect(ran).toHaveLength(1);
    const second = start([slow]);
    await expect.poll(() => ran.toSorted(), { timeout: 5_000 }).toEqual(["narrow 0", "narrow 1", "narrow 2"]);
    await second.close();
  });

  test("a run that outlasts the drain is told to stop, and another worker has its job at once", async () => {
    const signalled: string[] = [];
    const deaf = implementJob(COUNT, (_, { signal }) => {
      signal.addEventListener("abort", () => signalled.push(signal.reason.message));
      return new Promise<never>(() => {});
    });
    await publish(1);
    const first = start([deaf]);
    await expect.poll(() => first.running).toBe(1);
    await first.close(50);
    expect(signalled).toEqual(["the process is going down"]);
    const attempts: number[] = [];
    const job = implementJob(COUNT, async (_, { attempt }) => {
      attempts.push(attempt);
      return DONE;
    });
    const second = start([job]);
    await expect.poll(() => attempts, { timeout: 5_000 }).toEqual([1]);
    await second.close();
  });

  test("a worker process that is killed leaves its job to another", async () => {
    const killed = await holdJob({ databaseUrl: database.url, redisUrl: redis?.url, queue: COUNT.queue, lockMs: 600 });
    await publish(1);
    await killed.taken;
    killed.kill();
    let ran = 0;
    const job = implementJob(COUNT, async () => {
      ran++;
      return DONE;
    });
    const second = start([job], { lockMs: 600 });
    await expect.poll(() => ran, { timeout: 15_000 }).toBe(1);
    await second.close();
  });

  test("restarting the workers and the queue a hundred times loses and doubles nothing", async () => {
    const done: number[] = [];
    const job = implementJob(COUNT, async ({ n }) => {
      await pause(n % 3);
      done.push(n);
      return DONE;
    });
    const jobs = numbers(300).map((n) => ({ id: `job-${n}`, definition: COUNT, payload: { n } }));
    for (let round = 0; round < 100; round++) {
      await queue.publish(jobs.slice(round * 3, round * 3 + 3));
      const workers = start([job]);
      await pause(round % 5);
      await workers.close();
      await queue.close();
      queue = await open();
    }
    const workers = start([job]);
    await expect.poll(() => done.length, { timeout: 20_000 }).toBe(300);
    await workers.close();
    expect(done.sort(ascending)).toEqual(numbers(300));
  }, 60_000);

  test("a job that nobody here implements is left for a process that does", async () => {
    await publish(1, NARROW);
    const without = start([implementJob(COUNT, async () => DONE)]);
    await pause(200);
    await without.close();
    let ran = 0;
    const job = implementJob(NARROW, async () => {
      ran++;
      return DONE;
    });
    const withIt = start([job]);
    await expect.poll(() => ran, { timeout: 15_000 }).toBe(1);
    await withIt.close();
  });

  test("an implementation given twice is refused", () => {
    const job = implementJob(COUNT, async () => DONE);
    expect(() => start([job, job])).toThrow(/test.*implemented twice/);
  });

  test("the queue answers when it is asked whether it works", async () => {
    await queue.ping();
  });
});

test("workers go on when Redis has died and come back empty", async ({ skip }) => {
  const missing = redisMissing();
  if (missing) return skip(missing);
  const database = await testDatabase([OutboxRow]);
  const redis = await testRedis();
  const queue = await openQueue({ databaseUrl: database.url, redisUrl: redis.url, logger });
  const ran: number[] = [];
  const job = implementJob(COUNT, async ({ n }) => {
    ran.push(n);
    return DONE;
  });
  const workers = startWorkers([job], { queue, db: database.db, clock: systemClock, logger, random: () => 0 });
  const publish = (n: number) => queue.publish([{ id: `job-${n}`, definition: COUNT, payload: { n } }]);
  await publish(1);
  await expect.poll(() => ran).toEqual([1]);
  await redis.kill();
  await expect(publish(2)).rejects.toThrow();
  await expect(queue.ping()).rejects.toThrow();
  await redis.start();
  await expect
    .poll(
      () =>
        publish(3).then(
          () => "published",
          () => "refused",
        ),
      { timeout: 15_000 },
    )
    .toBe("published");
  await expect.poll(() => ran, { timeout: 15_000 }).toEqual([1, 3]);
  await workers.close();
  await queue.close();
  await redis.close();
  await database.close();
});

test("a queue that cannot be reached is told at start", async () => {
  await expect(openQueue({ databaseUrl: "postgres://127.0.0.1:1/none", logger })).rejects.toThrow("ECONNREFUSED");
  await expect(openQueue({ databaseUrl: "", redisUrl: "redis://127.0.0.1:1", logger })).rejects.toThrow();
});
