import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createClient } from "graphql-ws";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import WebSocket from "ws";
import { SUBGRAPH_WIRE, subgraphUrl } from "../../infra/graphql/subgraph-wire.ts";
import { signActor } from "../../infra/kernel/actor.ts";
import { deploymentKeys } from "../../roles/keys.ts";
import { beginCommand } from "../support/command-line.ts";
import { Deployment, PROCESS_NAMES } from "../support/deployment.ts";
import { ADMIN_KEY } from "../support/platform.ts";
import { builtCommandLine } from "../support/platform-build.ts";
import { killAll } from "../support/process-table.ts";
import { until } from "../support/until.ts";
import { cancel, collect, LOGS, script, settles, submit, within, writes } from "../support/workloads.ts";

const PER_SECOND = 40;
let deployment: Deployment;

beforeAll(async () => {
  deployment = await Deployment.start({ NODUS_REQUESTS_PER_KEY_PER_SECOND: String(PER_SECOND) });
}, 300_000);
beforeEach(({ onTestFailed }) => {
  onTestFailed(() => console.error(deployment?.lastOutput()));
});
afterAll(() => deployment?.dispose(), 60_000);

test("every process tells its own health, what it needs and its metrics", async () => {
  const checks: Record<string, string[]> = {};
  for (const name of PROCESS_NAMES) {
    const origin = deployment.originOf(name);
    expect((await fetch(`${origin}/healthz`)).status).toBe(200);
    const metrics = await (await fetch(`${origin}/metrics`)).text();
    expect(metrics).toContain("process_cpu_seconds_total");
    expect(metrics.includes("nodus_held_steps_total")).toBe(name.startsWith("worker"));
    const ready = (await (await fetch(`${origin}/readyz`)).json()) as { checks: Record<string, unknown> };
    checks[name] = Object.keys(ready.checks).sort();
  }
  expect(checks).toMatchObject({
    gateway: ["database", "objects", "subgraphs"],
    compute: ["database", "objects"],
    intake: ["database", "objects"],
    worker: ["database", "objects", "queue", "supplier"],
    "host-agent": ["agent", "isolation"],
  });
});

test("a process serves its own paths and nobody else's", async () => {
  for (const name of ["compute", "intake", "worker"] as const)
    expect((await fetch(`${deployment.originOf(name)}/v1/workloads`)).status).toBe(404);
  expect((await fetch(`${deployment.originOf("gateway")}/runner/v1/orders/x/objects/y`)).status).toBe(404);
  const unsigned = await fetch(subgraphUrl(deployment.originOf("compute"), "compute"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"query":"{ me { keyId } }"}',
  });
  expect(unsigned.status).toBe(401);
});

test("what one gateway took, the other one replays, and a key revoked at one ends its streams at the other", {
  timeout: 120_000,
}, async () => {
  const [one, other] = [deployment.admin(), deployment.admin("gateway-2")];
  const key = crypto.randomUUID();
  const workload = script("echo up; while :; do sleep 0.2; done");
  const id = await submit(one, workload, key);
  expect(await submit(other, workload, key)).toBe(id);
  await writes(other, id, "up");
  const made = await one.query(
    'mutation { createApiKey(input: { name: "short", scopes: ["workloads:read"] }) { key apiKey { id } } }',
  );
  const stream = other.as(made.createApiKey.key).overSocket(LOGS, { id });
  await stream.next();
  await one.query("mutation revoke($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { revokedAt } } }", {
    id: made.createApiKey.apiKey.id,
  });
  const end = stream.next().then(
    () => "an item",
    () => "an error",
  );
  expect(await within(end, 15_000, "the stream ends")).toBe("an error");
  await cancel(one, id);
  expect(await settles(one, id)).toMatchObject({ status: "cancelled" });
});

test("two gateways share the limit of a key", { timeout: 120_000 }, async () => {
  const made = await deployment
    .admin("gateway")
    .query('mutation { createApiKey(input: { name: "busy", scopes: ["workloads:read"] }) { key } }');
  const ask = async (gateway: "gateway" | "gateway-2") => {
    const { errors } = await deployment.admin(gateway).as(made.createApiKey.key).graphql("{ me { keyId } }");
    return errors[0]?.extensions.code ?? "answered";
  };
  await Promise.all([ask("gateway"), ask("gateway-2")]);
  const startedAt = performance.now();
  const answers = await Promise.all(
    Array.from({ length: 6 * PER_SECOND }, (_, n) => ask(n % 2 === 0 ? "gateway" : "gateway-2")),
  );
  const seconds = Math.ceil((performance.now() - startedAt) / 1000) + 1;
  const answered = answers.filter((answer) => answer === "answered").length;
  expect(answered).toBeLessThanOrEqual(PER_SECOND * seconds);
  expect(new Set(answers)).toEqual(new Set(["answered", "rate_limited"]));
});

test("items that come through a gateway are the subgraph's own", { timeout: 120_000 }, async () => {
  const client = deployment.admin();
  const id = await submit(client, script("printf 'a\\303\\251\\nb'; sleep 0.3; echo end"));
  await settles(client, id);
  const { me } = await client.query("{ me { tenantId keyId role scopes } }");
  const actor = {
    tenantId: me.tenantId,
    keyId: me.keyId,
    memberId: null,
    email: "",
    name: "",
    role: me.role,
    scopes: me.scopes,
  };
  const keys = deploymentKeys({ dataDir: deployment.dataDir, masterKey: null, previousMasterKey: null });
  const direct = createClient({
    url: subgraphUrl(deployment.originOf("compute"), "compute").href.replace("http", "ws"),
    webSocketImpl: WebSocket,
    connectionParams: { [SUBGRAPH_WIRE.actor]: signActor(actor, keys.actor, new Date()) },
    retryAttempts: 0,
  });
  try {
    const own = await collect(direct.iterate({ query: LOGS, variables: { id } }));
    const through = await collect(client.overSocket(LOGS, { id }));
    expect(through.length).toBeGreaterThan(1);
    expect(own.map(({ data }) => data)).toEqual(through);
  } finally {
    await direct.dispose();
  }
});

test("several streams of one socket are independent of each other and of other subgraphs", {
  timeout: 120_000,
}, async () => {
  const client = deployment.admin();
  const [quick, lasting] = await Promise.all([
    submit(client, script("echo quick")),
    submit(client, script("echo lasting; while :; do sleep 0.2; done")),
  ]);
  const socket = client.socket();
  try {
    const long = socket.iterate({ query: LOGS, variables: { id: lasting } });
    const left = socket.iterate({ query: LOGS, variables: { id: lasting } });
    expect(await left.next()).toMatchObject({ value: { data: { workloadLogs: { text: "lasting\n" } } } });
    await left.return?.();
    expect((await collect(socket.iterate({ query: LOGS, variables: { id: quick } }))).length).toBeGreaterThan(1);
    await deployment.end("others");
    expect(await long.next()).toMatchObject({ value: { data: { workloadLogs: { text: "lasting\n" } } } });
    await cancel(client, lasting);
    expect((await collect(long)).at(-1)).toMatchObject({ data: { workloadLogs: { complete: true } } });
  } finally {
    await socket.dispose();
    await deployment.start("others");
  }
  await Promise.all([settles(client, quick), settles(client, lasting)]);
});

const STORY = `query story($id: ID!) {
  workload(id: $id) { status rlEvents { hasMore } }
  pools { nodes { id } }
}`;

test("with a subgraph killed the others' data stays, and its errors say code and path", {
  timeout: 180_000,
}, async () => {
  const client = deployment.admin();
  const id = await submit(client, script("true"));
  await settles(client, id);
  await deployment.end("others");
  const { data, errors } = await client.graphql(STORY, { id });
  expect(data).toEqual({ workload: { status: "completed", rlEvents: null }, pools: null });
  const told = errors.map((error) => [error.extensions.code, error.path?.join(".")]);
  expect(told).toEqual(
    expect.arrayContaining([
      ["subgraph_unavailable", "workload.rlEvents"],
      ["subgraph_unavailable", "pools"],
    ]),
  );
  expect((await client.send("GET", "/readyz")).status).toBe(200);
  await deployment.start("others");
  const again = await client.graphql(STORY, { id });
  expect(again.errors).toEqual([]);
  expect(again.data.workload).toEqual({ status: "completed", rlEvents: { hasMore: false } });
});

test("a subgraph that is silent is waited for within bounds, and streams of the others flow meanwhile", {
  timeout: 120_000,
}, async () => {
  const client = deployment.admin();
  const id = await submit(client, script("echo up; while :; do sleep 0.2; done"));
  await writes(client, id, "up");
  deployment.signal("others", "SIGSTOP");
  try {
    const stream = client.overSocket(LOGS, { id });
    await stream.next();
    const story = client.graphql("query ($id: ID!) { workload(id: $id) { status rlEvents { hasMore } } }", { id });
    await cancel(client, id);
    const last = await within(collect(stream), 10_000, "the stream of another subgraph ends");
    expect(last.at(-1)).toMatchObject({ workloadLogs: { complete: true } });
    const { data, errors } = await within(story, 40_000, "the query is answered");
    expect(data).toEqual({ workload: { status: expect.any(String), rlEvents: null } });
    expect(errors.map((error) => error.extensions.code)).toContain("subgraph_timeout");
  } finally {
    deployment.signal("others", "SIGCONT");
  }
  await settles(client, id);
});

test("the command line follows a log across the deaths of its subgraph and of its gateway, each line once", {
  timeout: 120_000,
}, async () => {
  const ticks = "i=0; while [ $i -lt 200 ]; do echo tick $i; i=$((i+1)); sleep 0.1; done";
  const following = await beginCommand(["submit", "--follow", "--", "sh", "-c", ticks], {
    NODUS_BASE_URL: deployment.originOf("gateway"),
    NODUS_API_KEY: ADMIN_KEY,
  });
  await until("it shows what is written", () => following.stdout().includes("tick 5\n"));
  for (const [nth, name] of (["compute", "gateway"] as const).entries()) {
    await deployment.end(name);
    await until("it says so", () => following.stderr().split("Trying again").length === nth + 2);
    await deployment.start(name);
    const shown = following.stdout().length;
    await until("it shows more", () => following.stdout().length > shown);
  }
  const { code, stdout, stderr } = await following.ended;
  const [id, ...lines] = stdout.trimEnd().split("\n");
  expect(id).toMatch(/^wl_/);
  expect(lines).toEqual(Array.from({ length: 200 }, (_, i) => `tick ${i}`));
  expect(stderr.match(/Trying again for up to 5 minutes/g)).toHaveLength(2);
  expect(stderr).toMatch(/completed\n$/);
  expect(code).toBe(0);
});

test("a host agent that dies is started again by its own process", { timeout: 120_000 }, async () => {
  const client = deployment.admin();
  const agents = deployment.hostAgents();
  expect(agents).toHaveLength(1);
  killAll(agents);
  await until("another agent runs", () => {
    const [agent] = deployment.hostAgents();
    return agent !== undefined && agent.pid !== agents[0]!.pid;
  });
  const id = await submit(client, script("echo again"));
  expect(await settles(client, id)).toMatchObject({ status: "completed" });
});

test.each([
  ["a whole platform", ["up"], { NODUS_SUBGRAPH_URLS: "" }, /Another platform runs on this database/],
  ["another master key", ["intake"], { NODUS_MASTER_KEY: "ab".repeat(32) }, /another master key/],
  [
    "a data folder of its own",
    ["intake"],
    { NODUS_DATA_DIR: "own", NODUS_MASTER_KEY: "theirs" },
    /keeps its objects elsewhere/,
  ],
  ["another machine's capacity", ["worker"], { NODUS_LOCAL_CAPACITY: "off" }, /drives another machine/],
] as const)(
  "%s is refused beside the deployment in a sentence",
  async (_, args, settings, sentence) => {
    const folder = mkdtempSync(path.join(tmpdir(), "nodus-other-"));
    const theirKey = deployment.masterKey();
    const changed: Record<string, string> = { ...settings };
    if (changed.NODUS_DATA_DIR) changed.NODUS_DATA_DIR = folder;
    if (changed.NODUS_MASTER_KEY === "theirs") changed.NODUS_MASTER_KEY = theirKey;
    try {
      const child = spawn(process.execPath, [await builtCommandLine(), ...args], {
        env: { ...deployment.environment(), PORT: "0", ...changed },
        stdio: ["ignore", "ignore", "pipe"],
      });
      let said = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        said += text;
      });
      const code = await within(new Promise((resolve) => child.once("exit", resolve)), 100_000, "it ends");
      expect(code).toBe(2);
      expect(said).toMatch(sentence);
      expect(said).not.toMatch(/\n +at /);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  120_000,
);
