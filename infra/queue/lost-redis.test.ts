import { expect, test } from "vitest";
import { testDatabase } from "../../tests/support/database.ts";
import { COUNT } from "../../tests/support/queues.ts";
import { redisMissing, testRedis } from "../../tests/support/redis.ts";
import { OutboxRow } from "../db/outbox.ts";
import { systemClock } from "../kernel/clock.ts";
import { createLogger } from "../telemetry/logger.ts";
import { openQueue } from "./connection.ts";
import { DONE, implementJob } from "./implement-job.ts";
import { startWorkers } from "./workers.ts";

const logger = createLogger({ level: "silent", role: "test" });

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

test("a queue that is first used while Redis is away takes jobs once Redis is back", async ({ skip }) => {
  const missing = redisMissing();
  if (missing) return skip(missing);
  const redis = await testRedis();
  const queue = await openQueue({ databaseUrl: "", redisUrl: redis.url, logger });
  const publish = () => queue.publish([{ id: "job-1", definition: COUNT, payload: { n: 1 } }]);
  await redis.kill();
  await expect(publish()).rejects.toThrow();
  await redis.start();
  const published = () =>
    publish().then(
      () => "published",
      (error: Error) => error.message,
    );
  await expect.poll(published, { timeout: 15_000 }).toBe("published");
  await queue.close();
  await redis.close();
});

test("a queue that cannot be reached is told at start", async () => {
  await expect(openQueue({ databaseUrl: "postgres://127.0.0.1:1/none", logger })).rejects.toThrow("ECONNREFUSED");
  await expect(openQueue({ databaseUrl: "", redisUrl: "redis://127.0.0.1:1", logger })).rejects.toThrow();
});
