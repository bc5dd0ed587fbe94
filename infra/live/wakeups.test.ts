import pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import { emptyDatabase } from "../../tests/support/database.ts";
import { redisMissing, testRedis } from "../../tests/support/redis.ts";
import { createLogger } from "../telemetry/logger.ts";
import { openWakeups } from "./open-wakeups.ts";
import { Sleepers, type Wakeups } from "./wakeups.ts";

const logger = createLogger({ level: "silent", role: "test" });

interface Server {
  open(): Promise<Wakeups>;
  /** Breaks every connection of wake-ups, as a restart would. */
  breakLines(): Promise<void>;
  close(): Promise<void>;
}

async function postgresServer(): Promise<Server> {
  const database = await emptyDatabase();
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  return {
    open: () => openWakeups({ databaseUrl: database.url, logger }),
    breakLines: async () => {
      await admin.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'nodus wakeups' and datname = current_database()",
      );
    },
    close: async () => {
      await admin.end();
      await database.close();
    },
  };
}

async function redisServer(): Promise<Server> {
  const redis = await testRedis();
  return {
    open: () => openWakeups({ databaseUrl: "postgres://unused", redisUrl: redis.url, logger }),
    breakLines: async () => {
      await redis.kill();
      await redis.start();
    },
    close: () => redis.close(),
  };
}

const noRedis = redisMissing();

describe.each([
  { name: "PostgreSQL", make: postgresServer, missing: null },
  { name: "Redis", make: redisServer, missing: noRedis },
])("wake-ups by $name", ({ make, missing }) => {
  let server: Server;
  let here: Wakeups;
  let there: Wakeups;

  beforeEach(async ({ skip }) => {
    if (missing) skip(missing);
    server = await make();
    [here, there] = await Promise.all([server.open(), server.open()]);
    return async () => {
      await Promise.all([here.close(), there.close()]);
      await server.close();
    };
  });

  test("an announcement wakes its own process at once", () => {
    let woken = 0;
    here.on("topic", () => woken++);
    here.announce("topic");
    expect(woken).toBe(1);
  });

  test("an announcement wakes the other process, and its own one only once", async () => {
    const woken: string[] = [];
    here.on("topic", () => woken.push("here"));
    there.on("topic", () => woken.push("there"));
    here.announce("topic");
    await expect.poll(() => woken).toEqual(["here", "there"]);
    there.announce("topic");
    await expect.poll(() => woken).toEqual(["here", "there", "there", "here"]);
  });

  test("only sleepers of the topic are woken, and none that has left", async () => {
    const woken: string[] = [];
    there.on("other", () => woken.push("other"));
    const off = there.on("topic", () => woken.push("left"));
    there.on("topic", () => woken.push("topic"));
    off();
    off();
    expect(there.listeners).toBe(2);
    here.announce("topic");
    await expect.poll(() => woken).toEqual(["topic"]);
  });

  test("thousands of topics at once all arrive", async () => {
    const topics = Array.from({ length: 4_000 }, (_, n) => `wl_${n.toString(16).padStart(32, "0")}`);
    const woken = new Set<string>();
    for (const topic of topics) there.on(topic, () => woken.add(topic));
    for (const topic of topics) here.announce(topic);
    await expect.poll(() => woken.size, { timeout: 10_000 }).toBe(topics.length);
  });

  test("a broken line comes back, wakes everybody and carries wake-ups again", async () => {
    const woken: string[] = [];
    there.on("quiet", () => woken.push("quiet"));
    await server.breakLines();
    await expect.poll(() => woken, { timeout: 10_000 }).toContain("quiet");
    await expect.poll(() => here.healthy && there.healthy, { timeout: 10_000 }).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 100)); // late wake-ups of the reconnect itself
    woken.length = 0;
    here.announce("quiet");
    await expect.poll(() => woken, { timeout: 10_000 }).toEqual(["quiet"]);
  });

  test("closing is quick while the line is broken", async () => {
    const extra = await server.open();
    await server.breakLines();
    await extra.close();
    extra.announce("topic");
  });
});

test("what is announced while the sender's line is broken arrives when it is back", async () => {
  const database = await emptyDatabase();
  const here = await openWakeups({ databaseUrl: database.url, logger });
  const there = await openWakeups({ databaseUrl: database.url, logger });
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  const woken: string[] = [];
  for (const topic of ["first", "second"]) there.on(topic, () => woken.push(topic));
  await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'nodus wakeups' and datname = current_database() order by backend_start limit 1`,
  );
  here.announce("first"); // before the loss is noticed
  await expect.poll(() => here.healthy, { interval: 1 }).toBe(false);
  here.announce("second"); // after it
  await expect.poll(() => woken.toSorted(), { timeout: 10_000 }).toEqual(["first", "second"]);
  expect(there.healthy).toBe(true);
  await Promise.all([here.close(), there.close()]);
  await admin.end();
  await database.close();
});

test("a server that cannot be reached is told at once", async () => {
  await expect(openWakeups({ databaseUrl: "postgres://127.0.0.1:1/none", logger })).rejects.toThrow("ECONNREFUSED");
});

test("a sleeper that throws keeps no other from being woken", () => {
  const errors: unknown[] = [];
  const sleepers = new Sleepers((error) => errors.push(error));
  let woken = 0;
  sleepers.on("topic", () => {
    throw new Error("mine");
  });
  sleepers.on("topic", () => woken++);
  sleepers.wake("topic");
  expect(woken).toBe(1);
  expect(errors).toHaveLength(1);
});

test("sleepers that leave give their memory back", () => {
  const sleepers = new Sleepers(() => {});
  const offs = Array.from({ length: 1_000 }, (_, n) => sleepers.on(`topic-${n % 10}`, () => {}));
  expect(sleepers.count).toBe(1_000);
  for (const off of offs) off();
  expect(sleepers.count).toBe(0);
});
