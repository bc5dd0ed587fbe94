import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { PreparingClient } from "../../infra/db/preparing-client.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { openDiskStore } from "../../infra/objects/disk-store.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { awaitedTimes } from "../../roles/awaited-times.ts";
import { allEntities } from "../../roles/entities.ts";
import { commitLog } from "../../subgraphs/compute/jobs.ts";
import { runResults } from "../../subgraphs/compute/output/run-results.port.ts";
import { collectAssetBytes } from "../../subgraphs/data/asset/collect-asset-bytes.ts";
import { computeSettings } from "../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { abandonedExports } from "../data/abandoned-exports.ts";
import { abandonedLoads } from "../data/abandoned-loads.ts";
import { dueDeliveries } from "../data/due-deliveries.ts";
import { setBackClock } from "./set-back-clock.ts";
import { unfinishedReconciler } from "./unfinished-business.ts";

const NOW = new Date("2026-03-01T00:00:00Z");
/** More than one round looks at. */
const ROWS = 5_001;
const BEFORE = "'2026-02-01T00:00:00Z'";

/** Tables whose rows are kept for long after all is done for them, and what then stands in their columns, as SQL. */
const DONE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "compute.workload": { status: "'completed'", terminal_at: BEFORE, settled_at: BEFORE },
  "compute.stage": { status: "'completed'", workload_id: "'wl_' || n" },
  "compute.placement": {
    ...{ state: "'closed'", stage_run_id: "'sg_' || n", ended_at: BEFORE, gone_at: BEFORE },
    ...{ log_complete: "true", log_bytes: "10", log_committed_at: BEFORE },
  },
  "compute.attempt": { state: "'gone'", gone_at: BEFORE },
  "data.query_export": { state: "case when n % 2 = 0 then 'ready' else 'cleanup' end", cleaned_at: BEFORE },
  "data.sink_load": { state: "'loaded'", run_state: "'final'", workload_id: "'wl_' || n" },
  "data.asset": { state: "'ready'" },
  "data.webhook_delivery": { state: "'delivered'", ended_at: BEFORE },
};

const FILLERS: Readonly<Record<string, string>> = {
  boolean: "false",
  jsonb: "'{}'",
  bytea: "''",
  ARRAY: "'{}'",
  text: "'x' || n % 50",
  "timestamp with time zone": BEFORE,
};

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "nodus-rounds-"));
  database = await testDatabase(allEntities);
  // The rows here are about what is done; what else stands in them is nonsense.
  const checks = await database.db.sql<{ statement: string }>(
    `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as statement from pg_constraint
     where contype = 'c' and conrelid = any($1::regclass[])`,
    [Object.keys(DONE)],
  );
  for (const { statement } of checks) await database.db.sql(statement);
  for (const table of Object.keys(DONE)) await fill(table);
  await database.db.sql(`analyze ${Object.keys(DONE).join(", ")}`);
}, 120_000);
afterAll(async () => {
  await database?.close();
  rmSync(folder, { recursive: true });
});

/** Rows that differ in their ids, with something in every column that needs a value. */
async function fill(table: string): Promise<void> {
  const needed = await database.db.sql<{ column: string; type: string }>(
    `select column_name as column, data_type as type from information_schema.columns
     where table_schema || '.' || table_name = $1 and is_nullable = 'NO'`,
    [table],
  );
  const filled = Object.fromEntries(needed.map(({ column, type }) => [column, FILLERS[type] ?? "0"]));
  const row = { ...filled, id: "'id_' || lpad(n::text, 9, '0')", ...DONE[table] };
  const values = Object.entries(row).map(
    ([column, value]) => `(${value})${column.endsWith("_at") ? "::timestamptz" : ""}`,
  );
  await database.db.sql(
    `insert into ${table} (${Object.keys(row).join(", ")}) select ${values.join(", ")} from generate_series(1, ${ROWS}) n`,
  );
}

interface Sent {
  text: string;
  values: unknown[];
}

/** What `work` has the database do with tables of `DONE`. */
async function sentBy(work: () => Promise<unknown>): Promise<Sent[]> {
  const query = vi.spyOn(PreparingClient.prototype, "query");
  try {
    await work();
    const sent = query.mock.calls.map(([text, values]) => ({
      text: String(text),
      values: (values as unknown[]) ?? [],
    }));
    return sent.filter(({ text }) => /^\s*(select|with|update|delete)\b/i.test(text) && tablesIn(text).length > 0);
  } finally {
    query.mockRestore();
  }
}

function tablesIn(text: string): string[] {
  return Object.keys(DONE).filter((table) => new RegExp(`\\b${table}\\b`).test(text));
}

/** The big tables that the database reads from end to end for a statement. */
async function readWhole({ text, values }: Sent): Promise<string[]> {
  const plan = await database.db.sql(`explain (verbose, format json) ${text}`, values);
  return wholeIn(plan).filter((table) => table in DONE);
}

function wholeIn(plan: unknown): string[] {
  if (plan === null || typeof plan !== "object") return [];
  const { "Node Type": type, Schema: schema, "Relation Name": name } = plan as Record<string, unknown>;
  const own = type === "Seq Scan" ? [`${schema}.${name}`] : [];
  return [...own, ...Object.values(plan).flatMap(wholeIn)];
}

test("a round finds what is undone without reading what is done, however much that is", {
  timeout: 60_000,
}, async () => {
  const { db } = database;
  const clock = new FakeClock(NOW);
  const logger = createLogger({ role: "test", level: "silent" });
  const objects = await openDiskStore(folder);
  const scratchDir = path.join(folder, "scratch");
  const rounds = [
    unfinishedReconciler({ db, clock }),
    setBackClock({ db, clock, logger, settings: computeSettings, times: awaitedTimes(computeSettings) }),
    abandonedExports({ db, clock, objects, scratchDir }),
    abandonedLoads({ db, clock, results: runResults, scratchDir }),
    dueDeliveries({ db, clock }),
  ];
  for (const round of rounds) {
    const sent = await sentBy(() => round.run(new AbortController().signal, null));
    expect(sent.length, round.name).toBeGreaterThan(0);
    for (const statement of sent) {
      const whole = await readWhole(statement);
      // As few assets as here are read whole sooner than a page of them is looked up.
      expect(
        whole.filter((table) => table !== "data.asset"),
        `${round.name}: ${statement.text}`,
      ).toEqual([]);
    }
  }
});

test("assets that were deleted or failed long ago are found without reading the others", async () => {
  const { db } = database;
  const deps = { db, clock: new FakeClock(NOW), objects: await openDiskStore(folder) };
  const sent = (await sentBy(() => collectAssetBytes(deps))).filter(({ text }) =>
    text.startsWith("delete from data.asset "),
  );
  expect(sent).toHaveLength(2);
  for (const statement of sent) expect(await readWhole(statement), statement.text).toEqual([]);
});

test("a log that nobody committed is found behind however many generations that wrote nothing", async () => {
  const { db } = database;
  await db.sql("update compute.placement set log_bytes = 0, log_committed_at = null");
  await db.sql("update compute.placement set log_bytes = 10 where id = (select max(id) from compute.placement)");
  const round = unfinishedReconciler({ db, clock: new FakeClock(NOW) });
  const run = () => round.run(new AbortController().signal, null);
  const rung = () => db.sql("select payload from infra.outbox where job = $1", [commitLog.name]);
  const last = { payload: { placementId: `id_${String(ROWS).padStart(9, "0")}` } };
  await run();
  expect(await rung()).toEqual([]);
  await run();
  expect(await rung()).toEqual([last]);
  await run(); // from the beginning again
  expect(await rung()).toEqual([last]);
}, 20_000);

test("a statement that reads a table from end to end is found", async () => {
  const text = "select count(*) from compute.workload where name = $1";
  expect(await readWhole({ text, values: ["x"] })).toEqual(["compute.workload"]);
});
