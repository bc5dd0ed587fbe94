import { readdirSync } from "node:fs";
import path from "node:path";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { startTlsPostgres, type TlsPostgres } from "../support/tls-postgres.ts";
import { startTwoWorkers, type TwoWorkers } from "../support/two-workers.ts";
import { until } from "../support/until.ts";
import { script, settles, submit } from "../support/workloads.ts";

let deployment: TwoWorkers;
let postgres: TlsPostgres;
let admin: PlatformClient;
let psql: pg.Client;

beforeAll(async () => {
  [postgres, deployment] = await Promise.all([
    startTlsPostgres(),
    startTwoWorkers({ NODUS_ALLOW_PRIVATE_HOSTS: "localhost" }),
  ]);
  admin = deployment.admin("graph");
  await admin.rest("putSecret", { body: { name: "SHOP", value: postgres.secret() } });
  const connection = { name: "shop", kind: "postgres", secret: "SHOP", scope: "readwrite" };
  expect((await admin.rest("createConnection", { body: connection })).status).toBe(201);
  psql = new pg.Client({ connectionString: postgres.url(), ssl: { ca: postgres.caPem } });
  await psql.connect();
  await psql.query("create table people (id text, note text)");
}, 200_000);
beforeEach(({ onTestFailed }) => {
  onTestFailed(() => console.error(deployment?.lastOutput()));
});
afterAll(async () => {
  await psql?.end();
  await deployment?.dispose();
  await postgres?.close();
}, 60_000);

const sinkOf = async (id: string) =>
  (await admin.rest("listWorkloadOutputs", { path: { id } })).body.outputs[0]?.sink_state as string | undefined;
const assetOf = async (id: string) => (await admin.rest("getAsset", { path: { id } })).body;

/** Files that work under way has on this machine. */
function scratch(): string[] {
  const folders = ["exports", "loads", "imports"].map((name) => path.join(deployment.dataDir, "scratch", name));
  return folders.flatMap((folder) => {
    try {
      return readdirSync(folder);
    } catch {
      return []; // none was needed yet
    }
  });
}

/** How many sessions of the platform the team's database works for. */
async function busySessions(): Promise<number> {
  const busy = "select 1 from pg_stat_activity where application_name like 'nodus-%' and state = 'active'";
  return postgres.admin(async (client) => (await client.query(busy)).rowCount ?? 0);
}

/** A load and an export that a worker has, each waiting for the team's database. */
async function underWay(): Promise<{ workloadId: string; assetId: string }> {
  await psql.query("begin");
  await psql.query("lock table people in access exclusive mode");
  const outputs = { people: { path: "p.csv", sink: { connection: "shop", table: "people" } } };
  const stages = [{ id: "main", ...script("printf 'id,note\\n1,a\\n2,b\\n' > p.csv"), outputs }];
  const workloadId = await submit(admin, { stages });
  await settles(admin, workloadId);
  const sql = "select i, pg_sleep(0.05)::text from generate_series(1, 2000) i";
  const body = { kind: "connection_query", connection_id: "shop", sql, format: "csv" };
  const assetId = (await admin.rest("importAsset", { body })).body.id as string;
  await until("both are under way", async () => (await busySessions()) === 2);
  return { workloadId, assetId };
}

test("a worker that is frozen for longer than its leases loses its work, and does nothing of it when it comes back", async () => {
  await deployment.end("worker-2");
  const { workloadId, assetId } = await underWay();
  await deployment.start("worker-2");
  deployment.signal("worker", "SIGSTOP");
  const loaded = until("another worker loads", async () => (await sinkOf(workloadId)) === "loaded", {
    timeoutMs: 3 * LIMITS.loadLeaseMs,
    everyMs: 200,
  });
  try {
    await psql.query("commit");
    await loaded;
    await until("the export is given up", async () => (await assetOf(assetId)).state === "failed", {
      timeoutMs: 3 * LIMITS.exportLeaseMs,
      everyMs: 200,
    });
  } finally {
    deployment.signal("worker", "SIGCONT");
  }
  await until("nothing is left on the disk", () => scratch().length === 0, { timeoutMs: 60_000, everyMs: 200 });
  expect((await psql.query("select id, note from people order by id")).rows).toEqual([
    { id: "1", note: "a" },
    { id: "2", note: "b" },
  ]);
  expect((await psql.query("select workload_id from nodus_runs")).rows).toEqual([{ workload_id: workloadId }]);
  const { events } = (await admin.rest("listWorkloadEvents", { path: { id: workloadId } })).body;
  const told = (events as { event_type: string }[]).filter(({ event_type }) => event_type.startsWith("workload.sink_"));
  expect(told).toMatchObject([{ event_type: "workload.sink_loaded" }]);
  expect(await assetOf(assetId)).toMatchObject({ state: "failed", error: expect.stringMatching(/^shutdown:/) });
  const { account } = await admin.query("{ account { activeRuns heldUsd trialBalanceUsd } }");
  expect(account).toEqual({ activeRuns: 0, heldUsd: 0, trialBalanceUsd: 0 });
  expect((await settles(admin, await submit(admin, script("true")))).status).toBe("completed");
}, 240_000);
