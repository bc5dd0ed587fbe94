import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, onTestFailed, test } from "vitest";
import { Database } from "../../infra/db/database.ts";
import { postgresFolder } from "../../infra/db/embedded/place.ts";
import { Connection } from "../../subgraphs/data/connection/connection.entity.ts";
import { Secret } from "../../subgraphs/data/secret/secret.entity.ts";
import { insertConnection } from "../support/connections.ts";
import { httpsReceiver, type Receiver } from "../support/https-receiver.ts";
import { filesBelow, leaksIn, leaksInFiles } from "../support/leaks.ts";
import { ADMIN_KEY, Platform } from "../support/platform.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { newDataFolder } from "../support/platform-place.ts";
import { startTlsPostgres, type TlsPostgres } from "../support/tls-postgres.ts";
import { script, settles, submit } from "../support/workloads.ts";

/** Everything that somebody entrusts to the platform here. Each is looked for in whatever it writes or answers. */
const unique = (name: string) => `${name}~${randomUUID()}/+"é`;
const SECRETS = {
  secret: unique("secret"),
  replacedSecret: unique("replaced"),
  refusedSecret: unique("refused"),
  wandbKey: `wandb-${randomUUID()}`,
  wrongPassword: unique("wrong"),
  misshapenSecret: unique("misshapen"),
  webhookSecret: `webhook-${randomUUID()}`,
  githubToken: `ghp_${randomUUID().replaceAll("-", "")}`,
  importToken: `hf_${randomUUID().replaceAll("-", "")}`,
} as const;

let platform: Platform;
let postgres: TlsPostgres;
let receiver: Receiver;
/** The database's password as well, which the server was made with. */
let entrusted: Record<string, string>;

beforeAll(async () => {
  postgres = await startTlsPostgres();
  receiver = await httpsReceiver(postgres.authority);
  receiver.answer(({ path }, response) => {
    if (path === "/user") response.writeHead(200, { "content-type": "application/json" }).end('{"login":"octo"}');
    else response.writeHead(path === "/hook" ? 204 : 404).end();
  });
  entrusted = { ...SECRETS, databasePassword: decodeURIComponent(new URL(postgres.url()).password) };
  const dataDir = newDataFolder();
  const caFile = path.join(dataDir, "test-ca.pem");
  writeFileSync(caFile, postgres.caPem, { mode: 0o644 });
  platform = await Platform.start(
    {
      ...{ NODE_EXTRA_CA_CERTS: caFile, NODUS_ALLOW_PRIVATE_HOSTS: "localhost", NODUS_LOG_LEVEL: "debug" },
      ...{ NODUS_GITHUB_API_URL: receiver.origin, NODUS_HUGGING_FACE_URL: receiver.origin },
    },
    { dataDir },
  );
}, 120_000);
afterAll(async () => {
  await platform?.dispose();
  await Promise.all([receiver?.close(), postgres?.close()]);
}, 60_000);

/** Does with secrets whatever one can do with them, well and badly; answers everything that was told. */
async function entrustEverything(client: PlatformClient): Promise<string> {
  const told: unknown[] = [];
  const keep = <T extends { body?: unknown }>(answer: T): T => {
    told.push(answer.body ?? answer);
    return answer;
  };
  const put = async (name: string, value: string) => keep(await client.rest("putSecret", { body: { name, value } }));
  const connect = async (body: object) => keep(await client.rest("createConnection", { body }));

  await put("TOKEN", SECRETS.replacedSecret);
  expect((await put("TOKEN", SECRETS.secret)).status).toBe(201);
  expect((await put("NODUS_X", SECRETS.refusedSecret)).status).toBe(400);
  keep(await client.send("POST", "/v1/secrets", { body: { name: 7, value: { deep: SECRETS.refusedSecret } } }));
  keep(await client.send("POST", "/v1/secrets", { body: `{"name": "X", "value": "${SECRETS.refusedSecret}` }));

  const graphPut = "mutation ($input: PutSecretInput!) { putSecret(input: $input) { secret { id } } }";
  for (const input of [
    { name: "X", value: SECRETS.refusedSecret, more: 1 },
    { name: "X", value: [SECRETS.refusedSecret, 1] },
  ]) {
    const refused = await client.graphql(graphPut, { input });
    expect(refused.errors).toHaveLength(1);
    told.push(refused);
  }

  await put("DB", postgres.secret());
  expect((await connect({ name: "shop", kind: "postgres", secret: "DB" })).status).toBe(201);
  keep(await client.rest("verifyConnection", { path: { id: "shop" } }));
  await put("WRONG", postgres.secret({ password: SECRETS.wrongPassword }));
  expect((await connect({ name: "wrong", kind: "postgres", secret: "WRONG" })).status).toBe(422);
  await put("SHAPE", SECRETS.misshapenSecret);
  expect((await connect({ name: "shape", kind: "neon", secret: "SHAPE" })).status).toBe(400);

  await put("WB", SECRETS.wandbKey);
  await insertLiveConnection();

  const hook = { url: `${receiver.origin}/hook`, secret: SECRETS.webhookSecret };
  expect((await client.rest("putWebhook", { body: hook })).status).toBe(200); // the one answer that shows a secret
  keep(await client.rest("getWebhook"));
  const connected = await client.graphql(
    "mutation ($t: String!) { connectGithub(input: { token: $t }) { account { login } } }",
    { t: SECRETS.githubToken },
  );
  expect(connected.errors).toEqual([]);
  const imported = { kind: "huggingface", repo: "o/n", token: SECRETS.importToken };
  expect((await client.rest("importAsset", { body: imported })).status).toBe(400);
  told.push(connected.data);

  const id = await submit(
    client,
    script(
      `echo "$NODUS_SECRET_TOKEN"; echo "$WANDB_API_KEY" >&2; env
       head=$(printf %s "$WANDB_API_KEY" | cut -c1-10); printf %s "$head"; sleep 0.3; printf '%s\\n' "$WANDB_API_KEY" | cut -c11-`,
      { policy: { secretRefs: ["TOKEN"] }, connections: ["wb"] },
    ),
  );
  const state = await settles(client, id);
  expect(state).toMatchObject({ status: "completed" });
  const log = (await client.rest("getWorkloadLogs", { path: { id } })).body as string;
  // The run had them all the same.
  expect(log).toMatch(/^WANDB_ENTITY=e$/m);
  expect(log).toMatch(new RegExp(`^WANDB_NAME=${id}-main$`, "m"));
  expect(log).toMatch(/^NODUS_CONN_WB_KIND=wandb$/m);
  expect(log).toContain("WANDB_API_KEY=[redacted]");
  told.push(state, log, await everyRead(client, id));
  return told.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\n");
}

/** A live connection's row: the service itself cannot be asked from here. */
async function insertLiveConnection(): Promise<void> {
  const db = await Database.open({ url: platform.databaseUrl, entities: [Secret, Connection] });
  try {
    const [team] = await platform.sql<{ id: string }>("select id from compute.team");
    await insertConnection(db, team!.id, new Date(), {
      ...{ name: "wb", kind: "wandb", secret: "WB", entity: "e", project: "p" },
      ...{ liveMode: true, egressHosts: ["api.wandb.ai"] },
    });
  } finally {
    await db.close();
  }
}

/** What can be asked about all of it afterwards, over both faces. */
async function everyRead(client: PlatformClient, workloadId: string): Promise<unknown[]> {
  const path = { id: workloadId };
  const rest = [
    await client.rest("listSecrets"),
    await client.rest("listConnections"),
    await client.rest("getConnection", { path: { id: "shop" } }),
    await client.rest("getWorkload", { path }),
    await client.rest("listWorkloadEvents", { path }),
    await client.rest("listWorkloads"),
    await client.rest("listAssets"),
    await client.rest("liveLogs", { path }),
  ];
  const graph = await client.query(
    `query ($id: ID!) {
       secrets(first: 100) { nodes { id name version } } connections { nodes { id name kind secretId secretVersion egressHosts active } }
       githubAccount { login } webhook { url enabled } accountEvents { nodes { type payload } }
       webhookDeliveries { nodes { state attempts } }
       workload(id: $id) { payload events { type payload } placements { isolation message } }
     }`,
    { id: workloadId },
  );
  return [...rest.map(({ body }) => body), graph];
}

/** Every row of every table as text, bytes in hexadecimal; the queue's jobs are among them. */
async function everyRow(): Promise<Buffer> {
  const tables = await platform.sql<{ name: string }>(
    `select quote_ident(table_schema) || '.' || quote_ident(table_name) as name from information_schema.tables
      where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
  );
  expect(tables.length).toBeGreaterThan(20);
  const rows: string[] = [];
  for (const { name } of tables)
    for (const { row } of await platform.sql<{ row: string }>(`select t::text as row from ${name} t`)) rows.push(row);
  return Buffer.from(rows.join("\n"));
}

test("no secret stands in what the platform answers, logs, keeps in its database or leaves on the disk", async () => {
  onTestFailed(() => console.error(platform.lastOutput()));
  const told = await entrustEverything(platform.admin);
  expect(leaksIn(Buffer.from(told), entrusted)).toEqual([]);

  const rows = await everyRow();
  expect(rows.includes("connection.verified")).toBe(true); // the dump is one
  const everything = { ...entrusted, adminKey: ADMIN_KEY };
  expect(leaksIn(rows, everything)).toEqual([]);
  await platform.stop();
  // A first start shows the administrator's key, once, to whoever started it.
  expect(leaksIn(Buffer.from(platform.output), entrusted)).toEqual([]);
  // Rows that are gone may stand in the database's own files: those of its tables and of its write-ahead log.
  const files = new Set([platform.dataDir, postgresFolder(platform.dataDir)].flatMap((folder) => filesBelow(folder)));
  expect(files.size).toBeGreaterThan(100);
  expect(leaksInFiles([...files], everything)).toEqual([]);
}, 120_000);
