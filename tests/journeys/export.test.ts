import { afterAll, beforeAll, expect, test } from "vitest";
import { Platform } from "../support/platform.ts";
import { startTlsPostgres, type TlsPostgres } from "../support/tls-postgres.ts";
import { until } from "../support/until.ts";
import { settles, submit } from "../support/workloads.ts";

let platform: Platform;
let postgres: TlsPostgres;

beforeAll(async () => {
  [platform, postgres] = await Promise.all([
    Platform.start({ NODUS_ALLOW_PRIVATE_HOSTS: "localhost" }),
    startTlsPostgres(),
  ]);
  await platform.admin.rest("putSecret", { body: { name: "SHOP_DB", value: postgres.secret() } });
  const made = await platform.admin.rest("createConnection", {
    body: { name: "shop", kind: "postgres", secret: "SHOP_DB" },
  });
  expect(made.status).toBe(201);
}, 120_000);
afterAll(async () => {
  await platform?.dispose();
  await postgres?.close();
});

const importQuery = (sql: string, format: string) =>
  platform.admin.rest("importAsset", { body: { kind: "connection_query", connection_id: "shop", sql, format } });

const UPDATES = `subscription follow($id: ID!) {
  assetUpdates(assetId: $id, after: 0) { asset { state export { state rowCount bytes waitingReason } } complete }
}`;

test("a query's rows are followed on their way into Parquet", { timeout: 60_000 }, async () => {
  const { status, body } = await importQuery("select i from generate_series(1, 1000) i", "parquet");
  expect([status, body.state]).toEqual([202, "importing"]);
  const seen: { state: string; export: { state: string; rowCount: number | null } }[] = [];
  for await (const { assetUpdates } of platform.admin.overSocket(UPDATES, { id: body.id }))
    seen.push(assetUpdates.asset);
  expect(seen.at(-1)).toMatchObject({
    state: "ready",
    export: { state: "ready", rowCount: 1_000, waitingReason: null },
  });
});

test.each([
  ["parquet", "PAR1"],
  ["csv", "word"],
])("a query's rows as %s are the input of a run", { timeout: 60_000 }, async (format, beginning) => {
  const { body } = await importQuery("select 'from the shop' as word", format);
  await until("the export is ready", async () => {
    const { state } = (await platform.admin.rest("getAsset", { path: { id: body.id } })).body;
    return state === "ready";
  });
  const id = await submit(platform.admin, {
    inputs: [{ assetId: body.id, name: "words" }],
    source: {
      command: [
        "sh",
        "-c",
        `head -c 4 $NODUS_INPUT_words/data.${format}; tr -d "\\0" < $NODUS_INPUT_words/data.${format}`,
      ],
    },
  });
  await settles(platform.admin, id);
  const log = String((await platform.admin.rest("getWorkloadLogs", { path: { id } })).body);
  expect(log.startsWith(beginning)).toBe(true);
  expect(log).toContain("from the shop");
});

test("a platform that is stopped cancels its query and runs it again when it is back", {
  timeout: 90_000,
}, async () => {
  await postgres.admin((client) =>
    client.query("create table public.gate (open bool); grant select on public.gate to customer"),
  );
  const sql = "select 1 as a from pg_sleep(case when exists (select from gate) then 0 else 300 end)";
  const { body } = await importQuery(sql, "csv");
  const queries = () =>
    postgres.admin(async (client) => {
      const running = "select 1 from pg_stat_activity where application_name = 'nodus-export' and state = 'active'";
      return (await client.query(running)).rowCount;
    });
  await until("the query runs", async () => (await queries()) === 1);
  expect(await platform.stop()).toBe(0);
  expect(await queries()).toBe(0);
  await postgres.admin((client) => client.query("insert into public.gate values (true)"));
  await platform.start();
  const asset = await until("the export is ready", async () => {
    const found = (await platform.admin.rest("getAsset", { path: { id: body.id } })).body;
    return found.state !== "importing" && found;
  });
  expect(asset).toMatchObject({ state: "ready", export: { row_count: 1 } });
});
