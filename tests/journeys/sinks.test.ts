import { afterAll, beforeAll, expect, test } from "vitest";
import { parquetOf } from "../support/parquet-writer.ts";
import { Platform } from "../support/platform.ts";
import { startTlsPostgres, type TlsPostgres } from "../support/tls-postgres.ts";
import { until } from "../support/until.ts";
import { script, settles, submit } from "../support/workloads.ts";

let platform: Platform;
let postgres: TlsPostgres;
beforeAll(async () => {
  postgres = await startTlsPostgres();
  platform = await Platform.start({ NODUS_ALLOW_PRIVATE_HOSTS: "localhost" });
}, 120_000);
afterAll(async () => {
  await platform?.dispose();
  await postgres?.close();
}, 60_000);

interface ListedOutput {
  name: string;
  sink_state?: string;
  sink_rows?: number;
  sink_error?: string;
}

const rows = (sql: string): Promise<Record<string, unknown>[]> =>
  postgres.admin(async (client) => (await client.query(sql)).rows);

/** Waits until no output of the workload is on its way into a table. */
function loads(id: string): Promise<ListedOutput[]> {
  return until(
    `the outputs of ${id} are in their tables`,
    async () => {
      const { body } = await platform.admin.rest("listWorkloadOutputs", { path: { id } });
      const outputs = body.outputs as ListedOutput[];
      const over = outputs.length > 0 && outputs.every(({ sink_state }) => /^(loaded|failed)$/.test(sink_state ?? ""));
      return over ? outputs : null;
    },
    { timeoutMs: 40_000, everyMs: 100 },
  );
}

test("a run's CSV and Parquet outputs are in a team's tables, stay as they are when loaded again, and have their run beside them", async () => {
  const client = platform.admin;
  await client.rest("putSecret", { body: { name: "SHOP", value: postgres.secret() } });
  const made = await client.rest("createConnection", {
    body: { name: "shop", kind: "postgres", secret: "SHOP", scope: "readwrite" },
  });
  expect(made.status).toBe(201);
  const parquet = await parquetOf("select i::integer as i, i / 4.0 as q, i % 2 = 0 as even from range(1000) t(i)");
  const text = `printf 'Id,note\\n1,"a, b"\\n2,\\n' > people.csv; printf %s '${parquet.toString("base64")}' | base64 -d > q.parquet`;
  const sink = (path: string, table: string) => ({ path, sink: { connection: "shop", table } });
  const outputs = { people: sink("people.csv", "People"), quarters: sink("q.parquet", "quarters") };
  const stages = [{ id: "main", ...script(text), outputs }];
  const submitted = await client.rest("createWorkload", {
    body: { stages, sweep_id: "sweep-1" },
    headers: { "idempotency-key": crypto.randomUUID() },
  });
  expect(submitted.status).toBe(202);
  const id = submitted.body.workload_id as string;
  expect(await settles(client, id)).toMatchObject({ status: "completed" });
  expect(await loads(id)).toMatchObject([
    { name: "people", sink_state: "loaded", sink_rows: 2 },
    { name: "quarters", sink_state: "loaded", sink_rows: 1000 },
  ]);
  const there = async () => ({
    people: await rows("select id, note, nodus_workload_id, nodus_generation, nodus_stage from people order by id"),
    quarters: await rows(
      "select count(*)::int, sum(i)::int, sum(q)::float8, count(*) filter (where even)::int as even from quarters",
    ),
  });
  const own = { nodus_workload_id: id, nodus_generation: 1, nodus_stage: "main" };
  const expected = {
    people: [
      { id: "1", note: "a, b", ...own },
      { id: "2", note: null, ...own },
    ],
    quarters: [{ count: 1000, sum: 124_875, even: 500 }],
  };
  expect(await there()).toEqual(expected);

  const reloaded = await client.rest("reloadWorkloadOutput", { path: { id, name: "people" } });
  expect([reloaded.status, reloaded.body.table]).toEqual([202, "people"]);
  expect(await loads(id)).toMatchObject([{ sink_rows: 2 }, { sink_rows: 1000 }]);
  expect(await there()).toEqual(expected);

  const spend = (await client.rest("getWorkload", { path: { id } })).body.spend_usd as number;
  const run = await until("the run's last figures are there", async () => {
    const [found] = await rows(`select * from nodus_runs where workload_id = '${id}'`);
    return found?.cost_usd === null ? null : found;
  });
  expect(run).toMatchObject({ stage: "main", generation: 1, status: "completed", sweep_id: "sweep-1", gpu: null });
  expect(Number(run!.cost_usd)).toBe(spend);
  const events = (await client.rest("listWorkloadEvents", { path: { id } })).body.events as { event_type: string }[];
  expect(events.filter(({ event_type }) => event_type === "workload.sink_loaded")).toHaveLength(3);
}, 120_000);

test("an output that its table does not take leaves the workload completed, and says why in one word", async () => {
  const client = platform.admin;
  await rows("create table counted (a integer)");
  const outputs = { counted: { path: "c.csv", sink: { connection: "shop", table: "counted" } } };
  const id = await submit(client, { stages: [{ id: "main", ...script("printf 'a\\n7\\n' > c.csv"), outputs }] });
  expect(await settles(client, id)).toMatchObject({ status: "completed" });
  expect(await loads(id)).toMatchObject([{ name: "counted", sink_state: "failed", sink_error: "type_mismatch" }]);
  expect(await rows("select * from counted")).toEqual([]);
}, 90_000);
