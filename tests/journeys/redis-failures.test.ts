import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Platform } from "../support/platform.ts";
import { redisMissing, type TestRedis, testRedis } from "../support/redis.ts";
import { type Switch, startSwitch } from "../support/switch.ts";
import { until } from "../support/until.ts";
import { script, stateOf, submit } from "../support/workloads.ts";

/** What becomes of work when Redis forgets, dies or is replaced: nothing, but for some time. */
const missing = redisMissing();
/** A step whose job was lost is found by its rows after half a minute, in a round every ten seconds; a few steps in a row may be. */
const REFILLED_MS = 150_000;

let leader: TestRedis;
let replica: TestRedis;
let address: Switch;
let platform: Platform;

beforeAll(async () => {
  if (missing) return;
  leader = await testRedis(["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
  replica = await testRedis(["--replicaof", "127.0.0.1", `${leader.port}`]);
  address = await startSwitch(leader.port);
  platform = await Platform.start({ REDIS_URL: `redis://127.0.0.1:${address.port}` });
}, 120_000);
beforeEach(({ skip, onTestFailed }) => {
  if (missing) skip(missing);
  onTestFailed(() => console.error(platform?.lastOutput()));
});
afterAll(async () => {
  await platform?.dispose();
  await address?.close();
  await replica?.close();
  await leader?.close();
}, 60_000);

test("a Redis that may drop jobs is told by name at start", () => {
  expect(platform.output).toContain("maxmemory-policy allkeys-lru");
});

test("an emptied Redis is filled again from the database: nothing is lost, nothing done twice", {
  timeout: REFILLED_MS + 60_000,
}, async () => {
  const submitted = Array.from({ length: 12 }, (_, index) =>
    submit(platform.admin, script(`echo run ${index}; sleep 0.${index % 5}`)),
  );
  await flushedWhile(Promise.all(submitted), 20);
  await expectAllDoneOnce(await Promise.all(submitted));
});

test("a replica that was promoted takes over; until then work is taken and waits", {
  timeout: REFILLED_MS + 90_000,
}, async () => {
  const before = await Promise.all([1, 2, 3].map((n) => submit(platform.admin, script(`echo ${n}; sleep 1`))));
  address.leadTo(null);
  await leader.kill();
  const meanwhile = await submit(platform.admin, script("echo meanwhile"));
  await until("the queue's loss is told", async () => {
    const { status, body } = await platform.admin.send("GET", "/readyz");
    return status === 503 && body.checks.queue.state === "failing";
  });
  await asking(replica, (client) => client.replicaof("NO", "ONE"));
  address.leadTo(replica.port);
  await until("the queue is back", async () => (await platform.admin.send("GET", "/readyz")).status === 200);
  await expectAllDoneOnce([...before, meanwhile]);
});

test("an address that leads to a replica for a while costs time alone", { timeout: REFILLED_MS + 60_000 }, async () => {
  await leader.start();
  await asking(leader, (client) => client.replicaof("127.0.0.1", replica.port));
  address.leadTo(leader.port); // read only: every write is refused
  const id = await submit(platform.admin, script("echo late"));
  await asking(replica, (client) => client.ping());
  address.leadTo(replica.port);
  await expectAllDoneOnce([id]);
});

/** Empties Redis again and again while something goes on. */
async function flushedWhile(work: Promise<unknown>, times: number): Promise<void> {
  await asking(leader, async (client) => {
    for (let round = 0; round < times; round++) {
      await client.flushall();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });
  await work;
}

async function expectAllDoneOnce(ids: readonly string[]): Promise<void> {
  const settled = (id: string) =>
    until(
      `${id} is settled`,
      async () => {
        const state = await stateOf(platform.admin, id);
        return state.settledAt ? state : null;
      },
      { timeoutMs: REFILLED_MS, everyMs: 200 },
    );
  const ends = await Promise.all(ids.map(settled));
  for (const end of ends) {
    expect(end).toMatchObject({ status: "completed", exitCode: 0 });
    expect(end.placements.filter((p: { outcome: string }) => p.outcome === "completed")).toHaveLength(1);
  }
  const { account } = await platform.admin.query("{ account { activeRuns heldUsd trialBalanceUsd } }");
  expect(account).toEqual({ activeRuns: 0, heldUsd: 0, trialBalanceUsd: 0 });
}

async function asking<T>(server: TestRedis, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(server.url, { maxRetriesPerRequest: 3 });
  client.on("error", () => {}); // told by the command that meets it
  try {
    return await work(client);
  } finally {
    client.disconnect();
  }
}
