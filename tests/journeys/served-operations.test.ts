import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TABLE } from "../../rest-compat/table/table.ts";
import { anotherTeam } from "../support/another-team.ts";
import { Platform } from "../support/platform.ts";
import type { PlatformClient, RestAsk } from "../support/platform-client.ts";
import { newDataFolder } from "../support/platform-place.ts";
import { answer, type SourceServer, type Sources, sources } from "../support/source-server.ts";
import { startTlsPostgres, type TlsPostgres } from "../support/tls-postgres.ts";
import { until } from "../support/until.ts";
import { script, settles, submit } from "../support/workloads.ts";

let started: Platform;
const platform = () => started;
let internet: Sources;
let files: SourceServer;
let postgres: TlsPostgres;

/** What there is to ask about, made before the tests. */
interface World {
  workload: string;
  output: string;
  asset: string;
  pool: string;
  /** A workload whose output `rows` goes into a table. */
  loaded: string;
}
let world: World;
let stranger: PlatformClient;

interface Row {
  /** A request that must succeed, with the status that it succeeds with. */
  happy: (world: World) => RestAsk;
  status: number;
  /** A request that must be refused as 400. */
  bad?: (world: World) => RestAsk;
  /** True where the request names something of the team's, which another team must not find. */
  named: boolean;
}

const key = () => ({ "idempotency-key": crypto.randomUUID() });
const octets = { "content-type": "application/octet-stream" };
const SOURCE = { source: { command: ["true"] } };
const ofWorkload =
  (more: RestAsk = {}): Row["happy"] =>
  (w) => ({ path: { id: w.workload, name: w.output }, ...more });

const ROWS: Record<string, Row> = {
  identity: { happy: () => ({}), status: 200, named: false },
  createWorkload: {
    happy: () => ({ body: SOURCE, headers: key() }),
    status: 202,
    bad: () => ({ body: { ...SOURCE, requirements: { gpu: "abacus" } }, headers: key() }),
    named: false,
  },
  validateWorkload: {
    happy: () => ({ body: { ...SOURCE, outcome: { max_cost_usd: 1 } } }),
    status: 200,
    bad: () => ({ body: SOURCE }),
    named: false,
  },
  listWorkloads: { happy: () => ({}), status: 200, bad: () => ({ query: { offset: "some" } }), named: false },
  getWorkload: { happy: ofWorkload(), status: 200, named: true },
  cancelWorkload: { happy: ofWorkload(), status: 202, named: true },
  listWorkloadEvents: { happy: ofWorkload(), status: 200, bad: ofWorkload({ query: { after: "x" } }), named: true },
  getWorkloadLogs: { happy: ofWorkload(), status: 200, bad: ofWorkload({ query: { generation: "x" } }), named: true },
  liveLogs: { happy: ofWorkload(), status: 200, bad: ofWorkload({ query: { after: "x" } }), named: true },
  listWorkloadOutputs: { happy: ofWorkload(), status: 200, named: true },
  downloadWorkloadOutput: { happy: ofWorkload(), status: 200, named: true },
  listWorkloadArtifacts: { happy: ofWorkload(), status: 200, named: true },
  getWorkloadLedger: { happy: ofWorkload(), status: 200, named: true },
  getWorkloadRouting: { happy: ofWorkload(), status: 200, named: true },
  listWorkloadRLEvents: {
    happy: ofWorkload(),
    status: 200,
    bad: ofWorkload({ query: { limit: 100_000 } }),
    named: true,
  },
  putSecret: {
    happy: () => ({ body: { name: "TOKEN", value: "a value" } }),
    status: 201,
    bad: () => ({ body: { name: "NODUS_TOKEN", value: "a value" } }),
    named: false,
  },
  listSecrets: { happy: () => ({}), status: 200, named: false },
  deleteSecret: { happy: () => ({ path: { name: "TOKEN" } }), status: 204, named: true },
  uploadAsset: {
    happy: () => ({ query: { name: "data.csv" }, body: "a,b\n1,2\n", headers: octets }),
    status: 201,
    bad: () => ({ query: { name: "../data.csv" }, body: "a,b\n", headers: octets }),
    named: false,
  },
  importAsset: {
    happy: () => ({ body: { kind: "url", url: `${files.origin}/data.csv` } }),
    status: 201,
    bad: () => ({ body: { kind: "url", url: "http://files.example/data.csv" } }),
    named: false,
  },
  listAssets: { happy: () => ({}), status: 200, named: false },
  getAsset: { happy: (w) => ({ path: { id: w.asset } }), status: 200, named: true },
  deleteAsset: { happy: (w) => ({ path: { id: w.asset } }), status: 204, named: true },
  createConnection: {
    happy: () => ({ body: { name: "made", kind: "postgres", secret: "SHOP_DB" } }),
    status: 201,
    bad: () => ({ body: { name: "made", kind: "oracle", secret: "SHOP_DB" } }),
    named: false,
  },
  listConnections: { happy: () => ({}), status: 200, named: false },
  getConnection: { happy: () => ({ path: { id: "shop" } }), status: 200, named: true },
  verifyConnection: { happy: () => ({ path: { id: "shop" } }), status: 200, named: true },
  reloadWorkloadOutput: { happy: (w) => ({ path: { id: w.loaded, name: "rows" } }), status: 202, named: true },
  deleteConnection: { happy: () => ({ path: { id: "spare" } }), status: 204, named: true },
  putWebhook: {
    happy: () => ({ body: { url: "https://hooks.example.com/nodus" } }),
    status: 200,
    bad: () => ({ body: { url: "http://hooks.example.com/nodus" } }),
    named: false,
  },
  getWebhook: { happy: () => ({}), status: 200, named: true },
  deleteWebhook: { happy: () => ({}), status: 200, named: true },
  createWorkspace: {
    happy: () => ({ body: { name: "notes", size_gb: 1 } }),
    status: 201,
    bad: () => ({ body: { name: "notes", size_gb: -1 } }),
    named: false,
  },
  listWorkspaces: { happy: () => ({}), status: 200, named: false },
  createPool: {
    happy: () => ({ body: { name: "rack" } }),
    status: 201,
    bad: () => ({ body: { name: "" } }),
    named: false,
  },
  listPools: { happy: () => ({}), status: 200, named: false },
  getPool: { happy: (w) => ({ path: { id: w.pool } }), status: 200, named: true },
  listRLRecipes: { happy: () => ({}), status: 200, named: false },
};

beforeAll(async () => {
  internet = await sources();
  files = await internet.serve();
  files.routes.set("/data.csv", answer("a,b\n1,2\n"));
  postgres = await startTlsPostgres();
  const dataDir = newDataFolder();
  const caFile = path.join(dataDir, "authority.pem");
  writeFileSync(caFile, internet.authority.caPem, { mode: 0o644 });
  const settings = { NODE_EXTRA_CA_CERTS: caFile, NODUS_ALLOW_PRIVATE_HOSTS: "localhost" };
  started = await Platform.start(settings, { dataDir });
  const client = platform().admin;
  stranger = (await anotherTeam(platform())).client;
  const workload = await submit(client, script("echo hi; mkdir outputs; echo 1 > outputs/one.txt"));
  await settles(client, workload);
  const { outputs } = (await client.rest("listWorkloadOutputs", { path: { id: workload } })).body;
  const asset = await client.rest("uploadAsset", { query: { name: "a.txt" }, body: "text", headers: octets });
  const pool = await client.rest("createPool", { body: { name: "first" } });
  for (const [name, value] of Object.entries({ TOKEN: "a value", SHOP_DB: postgres.secret() }))
    await client.rest("putSecret", { body: { name, value } });
  for (const name of ["shop", "spare"]) {
    const body = { name, kind: "postgres", secret: "SHOP_DB", scope: "readwrite" };
    expect((await client.rest("createConnection", { body })).status).toBe(201);
  }
  const loaded = await submit(client, {
    stages: [
      {
        id: "main",
        source: { command: ["sh", "-c", "printf 'a\\n1\\n' > rows.csv"] },
        outputs: { rows: { path: "rows.csv", sink: { connection: "shop", table: "rows" } } },
      },
    ],
  });
  await settles(client, loaded);
  world = { workload, output: outputs[0].name, asset: asset.body.id, pool: pool.body.id, loaded };
}, 150_000);
afterAll(async () => {
  await started?.dispose();
  await Promise.all([internet?.close(), postgres?.close()]);
});

test("every operation that is served is asked here", () => {
  expect(Object.keys(ROWS).sort()).toEqual(Object.keys(TABLE).sort());
});

describe.each(Object.entries(ROWS))("%s", (operation, row) => {
  test("refuses whoever has no key, or a wrong one", async () => {
    for (const wrong of [null, "nk_nobody-has-this-key"]) {
      const { status } = await platform().admin.as(wrong).rest(operation, row.happy(world));
      expect(status).toBe(401);
    }
  });

  const { named, bad } = row;
  if (named)
    test("does not find what is another team's", async () => {
      expect((await stranger.rest(operation, row.happy(world))).status).toBe(404);
    });

  if (bad)
    test("refuses a bad request and names what is wrong", async () => {
      const { status, body } = await platform().admin.rest(operation, bad(world));
      expect(status).toBe(400);
      expect(body.error ?? body.code).toMatch(/^[a-z_]+$/);
      expect(body.message.length).toBeGreaterThan(10);
    });

  test("answers as documented", async () => {
    expect((await platform().admin.rest(operation, row.happy(world))).status).toBe(row.status);
  });
});

test("the export of a query is accepted, ready after a while, and answered at once when it may be reused", async () => {
  const client = platform().admin;
  const body = { kind: "connection_query", connection_id: "shop", sql: "select 1 as a", format: "csv" };
  expect((await client.as(null).rest("importAsset", { body })).status).toBe(401);
  const foreign = await stranger.rest("importAsset", { body });
  expect([foreign.status, foreign.body.error]).toEqual([400, "connection_not_found"]);
  const bad = await client.rest("importAsset", { body: { ...body, sql: "drop table a" } });
  expect([bad.status, bad.body.error]).toEqual([400, "invalid_query"]);
  const accepted = await client.rest("importAsset", { body });
  expect([accepted.status, accepted.body.state]).toEqual([202, "importing"]);
  const ready = await until("the export is ready", async () => {
    const asset = (await client.rest("getAsset", { path: { id: accepted.body.id } })).body;
    return asset.state !== "importing" && asset;
  });
  expect(ready).toMatchObject({ state: "ready", export: { state: "ready", row_count: 1 } });
  const reused = await client.rest("importAsset", { body: { ...body, reuse: true } });
  expect([reused.status, reused.body]).toEqual([200, ready]);
}, 60_000);

test("paths that clients call beyond the contract are served, or refused by name with what to do instead", async () => {
  const client = platform().admin;
  const identity = await client.send("GET", "/v1/identity");
  expect([identity.status, identity.body.email]).toEqual([200, "admin@localhost"]);
  expect((await client.as(null).send("GET", "/healthz")).status).toBe(200);
  const ready = await client.as(null).send("GET", "/readyz");
  expect(Object.keys(ready.body.checks).sort()).toEqual(["database", "objects", "queue", "supplier"]);
  const login = await client.as(null).send("POST", "/v1/console/device/start", { body: {} });
  expect([login.status, login.body.error]).toEqual([501, "device_login_unavailable"]);
  expect(login.body.fix).toContain("nodus keys mint");
});
