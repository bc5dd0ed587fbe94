import { afterEach, beforeEach, expect, test } from "vitest";
import { enqueue, OutboxRow } from "../infra/db/outbox.ts";
import { FakeClock, systemClock } from "../infra/kernel/clock.ts";
import { openPostgresWakeups } from "../infra/live/postgres-wakeups.ts";
import type { Wakeups } from "../infra/live/wakeups.ts";
import { type JobQueue, type JobToPublish, openQueue } from "../infra/queue/connection.ts";
import { defineJob } from "../infra/queue/define-job.ts";
import { DONE, implementJob } from "../infra/queue/implement-job.ts";
import { startWorkers } from "../infra/queue/workers.ts";
import { createLogger } from "../infra/telemetry/logger.ts";
import { type TestDatabase, testDatabase } from "../tests/support/database.ts";
import { publishDue, type RelayOptions, startRelay } from "./relay.ts";

const logger = createLogger({ level: "silent", role: "test" });
const JOB = defineJob<{ n: number }>({
  name: "test.count",
  queue: "test",
  concurrency: 8,
  timeoutMs: 10_000,
  attempts: 5,
});
const START = new Date("2026-03-01T00:00:00Z");

let database: TestDatabase;
let wakeups: Wakeups;
let undo: (() => Promise<unknown>)[];

beforeEach(async () => {
  database = await testDatabase([OutboxRow]);
  wakeups = await openPostgresWakeups(database.url, logger);
  database.db.announceTo((topic) => wakeups.announce(topic));
  undo = [() => wakeups.close(), () => database.close()];
});

afterEach(async () => {
  for (const f of undo) await f();
});

/** A queue that only remembers, for tests about what the relay publishes. */
function rememberingQueue() {
  const published: JobToPublish[] = [];
  return { published, publish: async (jobs: readonly JobToPublish[]) => void published.push(...jobs) };
}

function relayOptions(queue: Pick<JobQueue, "publish">, changes: Partial<RelayOptions> = {}): RelayOptions {
  const { db } = database;
  return { db, queue, wakeups, definitions: [JOB], clock: systemClock, logger, random: () => 0.5, ...changes };
}

function put(n: number, dueAt = START, job = JOB): Promise<void> {
  return database.db.command((tx) => enqueue(tx, job, { n }, START, dueAt));
}

function putMany(count: number): Promise<void> {
  return database.db.command(async (tx) => {
    for (let n = 0; n < count; n++) await enqueue(tx, JOB, { n }, START);
  });
}

async function rowsLeft(): Promise<number> {
  const [row] = await database.db.sql<{ n: number }>("select count(*)::int as n from infra.outbox");
  return row?.n ?? -1;
}

async function openTestQueue(): Promise<JobQueue> {
  const queue = await openQueue({ databaseUrl: database.url, logger });
  undo.unshift(() => queue.close());
  return queue;
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const numberOf = (job: JobToPublish) => (job.payload as { n: number }).n;

test("a committed job reaches a worker without anybody looking for it", async () => {
  const queue = await openTestQueue();
  const seen: number[] = [];
  const job = implementJob(JOB, async ({ n }) => {
    seen.push(n);
    return DONE;
  });
  const workers = startWorkers([job], { queue, db: database.db, clock: systemClock, logger, random: () => 0.5 });
  const relay = startRelay(relayOptions(queue));
  undo.unshift(
    () => relay.close(),
    () => workers.close(),
  );
  await put(1);
  await expect.poll(() => seen, { interval: 5, timeout: 10_000 }).toEqual([1]);
  await expect.poll(rowsLeft).toBe(0);
});

test("a thousand rows are each published once by several relays at once", async () => {
  const queue = rememberingQueue();
  await putMany(1_000);
  const relays = [startRelay(relayOptions(queue)), startRelay(relayOptions(queue)), startRelay(relayOptions(queue))];
  await expect.poll(rowsLeft, { timeout: 10_000 }).toBe(0);
  await Promise.all(relays.map((relay) => relay.close()));
  expect(queue.published.map(numberOf).sort((a, b) => a - b)).toEqual(numbers(1_000));
  expect(new Set(queue.published.map((job) => job.id)).size).toBe(1_000);
});

test("a row waits until it is due and goes then", async () => {
  const clock = new FakeClock(START);
  const queue = rememberingQueue();
  await put(1, new Date(START.getTime() + 60_000));
  const relay = startRelay(relayOptions(queue, { clock }));
  undo.unshift(() => relay.close());
  const advanceBy = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 500) {
      await clock.advance(500);
      await new Promise((resolve) => setTimeout(resolve, 2)); // the database answers in real time
    }
  };
  await advanceBy(59_500);
  expect(queue.published).toEqual([]);
  await expect
    .poll(async () => {
      await clock.advance(500);
      return queue.published.map(numberOf);
    })
    .toEqual([1]);
});

test("rows are published in the order in which they are due", async () => {
  const queue = rememberingQueue();
  for (const n of [3, 1, 2]) await put(n, new Date(START.getTime() + n));
  await publishDue(relayOptions(queue), new Date(START.getTime() + 10));
  expect(queue.published.map(numberOf)).toEqual([1, 2, 3]);
});

test("a relay that dies after publishing leaves the rows, and they go out again under the same ids", async () => {
  const queue = rememberingQueue();
  await putMany(10);
  const dying = {
    publish: async (jobs: readonly JobToPublish[]) => {
      await queue.publish(jobs);
      throw new Error("killed between publishing and deleting");
    },
  };
  await expect(publishDue(relayOptions(dying), START)).rejects.toThrow("killed");
  expect(await rowsLeft()).toBe(10);
  expect(await publishDue(relayOptions(queue), START)).toBe(10);
  expect(await rowsLeft()).toBe(0);
  const ids = queue.published.map((job) => job.id);
  expect(ids).toHaveLength(20);
  expect(ids.slice(10).sort()).toEqual(ids.slice(0, 10).sort());
});

test("publishing the same row twice runs the job once while the first is still queued", async () => {
  const queue = await openTestQueue();
  const ran: number[] = [];
  const jobs = numbers(20).map((n) => ({ id: `row-${n}`, definition: JOB, payload: { n } }));
  await queue.publish(jobs);
  await queue.publish(jobs);
  const job = implementJob(JOB, async ({ n }) => {
    ran.push(n);
    return DONE;
  });
  const workers = startWorkers([job], { queue, db: database.db, clock: systemClock, logger, random: () => 0.5 });
  undo.unshift(() => workers.close());
  await expect.poll(() => ran.length, { timeout: 10_000 }).toBe(20);
  await workers.close();
  expect(ran.sort((a, b) => a - b)).toEqual(numbers(20));
});

test("a row of a job that this process does not know stays for another, and holds nothing up", async () => {
  const queue = rememberingQueue();
  await put(1, START, { ...JOB, name: "test.unknown" });
  await put(2);
  expect(await publishDue(relayOptions(queue), START)).toBe(1);
  expect(queue.published.map(numberOf)).toEqual([2]);
  expect(await rowsLeft()).toBe(1);
});

test("rows wait in the outbox while the queue is down and go out when it is back", async () => {
  const working = rememberingQueue();
  let up = false;
  const queue = {
    publish: async (jobs: readonly JobToPublish[]) => {
      if (!up) throw new Error("the queue is down");
      await working.publish(jobs);
    },
  };
  let failures = 0;
  const counting = createLogger({ level: "error", role: "test", destination: { write: () => void failures++ } });
  await putMany(5);
  const relay = startRelay(relayOptions(queue, { logger: counting }));
  undo.unshift(() => relay.close());
  await expect.poll(() => failures).toBeGreaterThan(1);
  expect(await rowsLeft()).toBe(5);
  up = true;
  await expect.poll(rowsLeft, { timeout: 10_000 }).toBe(0);
  expect(working.published.map(numberOf).sort()).toEqual(numbers(5));
});

test("a closed relay has let go of its topic", async () => {
  const relay = startRelay(relayOptions(rememberingQueue()));
  expect(wakeups.listeners).toBe(1);
  await relay.close();
  expect(wakeups.listeners).toBe(0);
});
