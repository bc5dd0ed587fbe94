import { beforeEach, describe } from "vitest";
import { OutboxRow } from "../../infra/db/outbox.ts";
import { systemClock } from "../../infra/kernel/clock.ts";
import { type JobQueue, openQueue } from "../../infra/queue/connection.ts";
import { defineJob } from "../../infra/queue/define-job.ts";
import type { JobImplementation } from "../../infra/queue/implement-job.ts";
import { startWorkers, type Workers, type WorkersOptions } from "../../infra/queue/workers.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { type TestDatabase, testDatabase } from "./database.ts";
import { redisMissing, type TestRedis, testRedis } from "./redis.ts";

interface Numbered {
  n: number;
}
/** Up to four at once. */
export const COUNT = defineJob<Numbered>({
  name: "test.count",
  queue: "test",
  concurrency: 4,
  timeoutMs: 30_000,
  attempts: 5,
});
/** One at a time, in the same queue. */
export const NARROW = defineJob<Numbered>({ ...COUNT, name: "test.narrow", concurrency: 1 });

/** A queue of one test, with an empty outbox beside it. */
export interface QueueUnderTest {
  readonly stores: { databaseUrl: string; redisUrl: string | undefined };
  readonly queue: JobQueue;
  /** Closes the queue and opens it again on the same store. */
  reopen(): Promise<void>;
  start(jobs: readonly JobImplementation[], changes?: Partial<WorkersOptions>): Workers;
  /** Publishes jobs with the payloads `{n: from}` up to `{n: from + count - 1}`. */
  publish(count: number, definition?: typeof COUNT, from?: number): Promise<void>;
}

const logger = createLogger({ level: "silent", role: "test" });

/** Declares the same tests for a queue in PostgreSQL and for one in Redis, each with new stores. */
export function forEachQueueStore(title: string, declare: (under: QueueUnderTest) => void): void {
  describe.each([
    { store: "PostgreSQL", missing: null },
    { store: "Redis", missing: redisMissing() },
  ])(`${title} in $store`, ({ store, missing }) => {
    let database: TestDatabase;
    let redis: TestRedis | null;
    let queue: JobQueue;

    beforeEach(async ({ skip }) => {
      if (missing) skip(missing);
      database = await testDatabase([OutboxRow]);
      redis = store === "Redis" ? await testRedis() : null;
      queue = await openQueue({ ...stores(), logger });
      return async () => {
        await queue.close();
        await redis?.close();
        await database.close();
      };
    });

    const stores = () => ({ databaseUrl: database.url, redisUrl: redis?.url });
    declare({
      get stores() {
        return stores();
      },
      get queue() {
        return queue;
      },
      reopen: async () => {
        await queue.close();
        queue = await openQueue({ ...stores(), logger });
      },
      start: (jobs, changes = {}) =>
        startWorkers(jobs, { queue, db: database.db, clock: systemClock, logger, random: () => 0, ...changes }),
      publish: (count, definition = COUNT, from = 0) => {
        const numbers = Array.from({ length: count }, (_, k) => from + k);
        return queue.publish(numbers.map((n) => ({ id: `${definition.name}-${n}`, definition, payload: { n } })));
      },
    });
  });
}
