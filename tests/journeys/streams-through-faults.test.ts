import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { readPidFile } from "../../infra/db/embedded/pid-file.ts";
import { Deployment, type Layout } from "../support/deployment.ts";
import { dataFolder, type HolderProcess, holdPostgres } from "../support/embedded-postgres.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { kill, processTable, withDescendants } from "../support/process-table.ts";
import { redisMissing, testRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";
import { EVENTS, LOGS, type LogItem, script, settles, sha256, submit, writes } from "../support/workloads.ts";

/** What readers see of a database and a queue that die, come back and fall silent: nothing but time. */
const missing = redisMissing();
type Name = "rest" | "host-agent" | "gateway" | "gateway-2";
const LAYOUT = {
  processes: {
    rest: { args: ["up"], settings: { NODUS_ROLES: "compute,sandboxes,rl,pools,data,intake,worker" } },
    "host-agent": { args: ["host-agent"] },
    gateway: { args: ["gateway"] },
    "gateway-2": { args: ["gateway"] },
  },
  environment: (originOf) => ({
    NODUS_PUBLIC_URL: originOf("gateway"),
    NODUS_INTAKE_URL: originOf("rest"),
    NODUS_SUBGRAPH_URLS: ["compute", "sandboxes", "rl", "pools", "data"]
      .map((subgraph) => `${subgraph}=${originOf("rest")}`)
      .join(","),
    NODUS_CPU_FALLBACK: "1",
    NODUS_LOCAL_CAPACITY: "attach",
  }),
} satisfies Layout<Name>;
const FROZEN_MS = 20_000;
const LINES = 350;
const LOG = Array.from({ length: LINES }, (_, i) => `line ${i} é\n`).join("");
const PRINTS = script(`i=0; while [ $i -lt ${LINES} ]; do echo "line $i é"; i=$((i+1)); sleep 0.1; done`);

beforeEach(({ skip }) => {
  if (missing) skip(missing);
});

/** Statuses and close codes that speak of the moment: too slow, too much at once, a part that is away. */
const PASSING: ReadonlySet<unknown> = new Set([408, 429, 502, 503, 504, 4408, 4429]);

/** Whether the platform said no; whatever else breaks a stream passes, and the cursor is all that its reader needs. */
function isRefusal(error: unknown): boolean {
  if (Array.isArray(error)) return error.some(({ extensions }) => !PASSING.has(extensions?.status));
  const broken = error as { status?: number | null; code?: unknown };
  if (broken.status !== undefined) return !PASSING.has(broken.status);
  const { code } = broken;
  return typeof code === "number" && code >= 4400 && code < 4500 && !PASSING.has(code);
}

/** A subscription that is taken up with its last cursor whenever it breaks off, unless it is refused. */
class Reader<T extends { cursor: string | number }> {
  readonly items: T[] = [];
  /** How often it was taken up again. */
  resumed = 0;
  readonly done: Promise<void>;

  constructor(open: (after: T["cursor"] | null) => AsyncIterable<T>) {
    this.done = this.#follow(open);
    this.done.catch(() => {}); // told to the test when it awaits the end
  }

  async #follow(open: (after: T["cursor"] | null) => AsyncIterable<T>): Promise<void> {
    for (;;) {
      try {
        for await (const item of open(this.items.at(-1)?.cursor ?? null)) this.items.push(item);
        return;
      } catch (error) {
        if (isRefusal(error)) throw error;
        this.resumed++;
        await sleep(100);
      }
    }
  }
}

type EventItem = { cursor: number; event: { seq: number } | null };

const over = (client: PlatformClient, isSocket: boolean, query: string, variables: Record<string, unknown>) =>
  isSocket ? client.overSocket(query, variables) : client.overEvents(query, variables);

async function* logsOf(client: PlatformClient, isSocket: boolean, id: string, after: string | number | null) {
  for await (const { workloadLogs } of over(client, isSocket, LOGS, { id, after })) yield workloadLogs as LogItem;
}

async function* eventsOf(client: PlatformClient, isSocket: boolean, id: string, after: string | number | null) {
  for await (const { workloadEvents } of over(client, isSocket, EVENTS, { id, after: after ?? 0 }))
    yield workloadEvents as EventItem;
}

/** The server with all that serves its connections. */
function serverProcesses(folder: string): number[] {
  const { pid } = readPidFile(folder)!;
  const table = processTable();
  return withDescendants(
    table.filter((one) => one.pid === pid),
    table,
  ).map((one) => one.pid);
}

async function frozen<T>({ ready: { folder } }: HolderProcess, work: () => Promise<T>): Promise<T> {
  const stopped = serverProcesses(folder).filter((pid) => kill(pid, "SIGSTOP"));
  try {
    return await work();
  } finally {
    for (const pid of stopped) kill(pid, "SIGCONT");
  }
}

async function deployed() {
  const postgres = await holdPostgres(dataFolder());
  const redis = await testRedis();
  onTestFinished(() => redis.close());
  const settings = { DATABASE_URL: postgres.ready.url, REDIS_URL: redis.url };
  const deployment = await Deployment.laidOut<Name>(LAYOUT, settings);
  onTestFinished(async ({ task }) => {
    if (task.result?.state === "fail") console.error(deployment.lastOutput());
    await deployment.dispose();
  }, 60_000);
  return { postgres, redis, deployment };
}

test("twelve streams over two gateways are exact although queue and database die and the database falls silent", {
  timeout: 180_000,
}, async () => {
  const { postgres, redis, deployment } = await deployed();
  const admin = deployment.admin("gateway");
  const id = await submit(admin, PRINTS);
  await writes(admin, id, "line 0 ");
  const places = [0, 1, 2, 3, 4, 5].map((n) => ({
    client: n % 2 === 0 ? admin : deployment.admin("gateway-2"),
    isSocket: n < 3,
  }));
  const logs = places.map((at) => new Reader<LogItem>((after) => logsOf(at.client, at.isSocket, id, after)));
  const events = places.map((at) => new Reader<EventItem>((after) => eventsOf(at.client, at.isSocket, id, after)));
  await until("all streams are open", () => [...logs, ...events].every(({ items }) => items.length > 0));

  await redis.kill();
  await sleep(1_000);
  await redis.startEmpty();

  const { pid } = readPidFile(postgres.ready.folder)!;
  kill(pid, "SIGQUIT");
  await until("another server runs", () => {
    const server = readPidFile(postgres.ready.folder);
    return server !== null && server.pid !== pid;
  });
  await until("work is taken again", async () => (await admin.send("GET", "/readyz")).status === 200);

  const key = "while-the-database-is-silent";
  const refused = await frozen(postgres, async () => {
    const [answer] = await Promise.all([
      admin.rest("createWorkload", {
        body: { source: { image: "busybox:1", command: ["true"] } },
        headers: { "Idempotency-Key": key },
      }),
      sleep(FROZEN_MS),
    ]);
    return answer;
  });
  // Too slow is 503 where it is the look-up of the key, and 504 where it is the command: both say to ask again.
  expect([202, 503, 504]).toContain(refused.status);

  await Promise.all([...logs, ...events].map(({ done }) => done));
  const resumptions = (readers: readonly { resumed: number }[]) =>
    readers.reduce((sum, { resumed }) => sum + resumed, 0);
  expect(resumptions(logs), "streams of logs that were taken up again").toBeGreaterThan(0);
  expect(resumptions(events), "streams of events that were taken up again").toBeGreaterThan(0);
  for (const { items } of logs) {
    expect(Buffer.concat(items.map(({ data }) => Buffer.from(data, "base64"))).toString()).toBe(LOG);
    expect(items.at(-1)!.end).toMatchObject({ totalBytes: Buffer.byteLength(LOG), sha256: sha256(LOG) });
  }
  const told = events.map(({ items }) => items.flatMap(({ event }) => (event ? [event.seq] : [])));
  for (const seqs of told) expect(seqs).toEqual(Array.from({ length: told[0]!.length }, (_, i) => i + 1));
  expect((await settles(admin, id)).placements).toMatchObject([{ outcome: "completed", logTailLost: false }]);
  const again = await admin.rest("createWorkload", {
    body: { source: { image: "busybox:1", command: ["true"] } },
    headers: { "Idempotency-Key": key },
  });
  expect(again.status).toBe(202);
  const { account } = await admin.query("{ account { trialBalanceUsd } }");
  expect(account).toEqual({ trialBalanceUsd: 0 });
});
