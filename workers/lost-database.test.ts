import { expect, test } from "vitest";
import { Database } from "../infra/db/database.ts";
import { startEmbeddedPostgres } from "../infra/db/embedded/embedded-postgres.ts";
import { enqueue, OutboxRow } from "../infra/db/outbox.ts";
import { systemClock } from "../infra/kernel/clock.ts";
import { openPostgresWakeups } from "../infra/live/postgres-wakeups.ts";
import { openQueue } from "../infra/queue/connection.ts";
import { defineJob } from "../infra/queue/define-job.ts";
import { DONE, implementJob } from "../infra/queue/implement-job.ts";
import { startWorkers } from "../infra/queue/workers.ts";
import { createLogger } from "../infra/telemetry/logger.ts";
import { dataFolder } from "../tests/support/embedded-postgres.ts";
import { startRelay } from "./relay.ts";

const logger = createLogger({ level: "silent", role: "test" });
const random = Math.random;
const clock = systemClock;
const JOB = defineJob<{ n: number }>({
  name: "test.count",
  queue: "test",
  concurrency: 4,
  timeoutMs: 30_000,
  attempts: 20,
});

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test("PostgreSQL killed again and again loses no committed job, and everything goes on by itself", async () => {
  const server = await startEmbeddedPostgres({ dataDir: dataFolder(), logger });
  const db = await Database.open({ url: server.url, entities: [OutboxRow] });
  await db.orm.schema.create();
  await db.sql("create table done (n int primary key)");
  const wakeups = await openPostgresWakeups(server.url, logger);
  db.announceTo((topic) => wakeups.announce(topic));
  const queue = await openQueue({ databaseUrl: server.url, logger });
  const job = implementJob(JOB, async ({ n }, context) => {
    await context.db.sql("insert into done values ($1) on conflict do nothing", [n]);
    return DONE;
  });
  const relay = startRelay({ db, queue, wakeups, definitions: [JOB], clock, logger, random });
  const workers = startWorkers([job], { queue, db, clock, logger, random, lockMs: 2_000 });

  const committed: number[] = [];
  let writing = true;
  const writer = async () => {
    for (let n = 0; writing; n++) {
      await db
        .command((tx) => enqueue(tx, JOB, { n }, clock.now()))
        .then(
          () => committed.push(n),
          () => pause(50), // the server is down: this one may or may not have been committed
        );
      await pause(2);
    }
  };
  const written = writer();
  for (let kill = 0; kill < 3; kill++) {
    const seen = committed.length;
    await expect.poll(() => committed.length, { timeout: 30_000 }).toBeGreaterThan(seen + 20);
    process.kill(server.pid(), "SIGKILL");
  }
  const seen = committed.length;
  await expect.poll(() => committed.length, { timeout: 30_000 }).toBeGreaterThan(seen + 20);
  writing = false;
  await written;

  const doneOnes = async () => new Set((await db.sql<{ n: number }>("select n from done")).map((row) => row.n));
  const missing = async () => {
    const done = await doneOnes();
    return committed.filter((n) => !done.has(n));
  };
  await expect.poll(missing, { timeout: 40_000, interval: 200 }).toEqual([]);
  await expect.poll(() => wakeups.healthy, { timeout: 10_000 }).toBe(true);
  await queue.ping();

  await server.stop();
  await relay.close(); // nothing of this hangs although the server is gone
  await workers.close();
  await queue.close();
  await wakeups.close();
  await db.close();
}, 120_000);
