import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTlsPostgres, type TlsPostgres } from "../../../../tests/support/tls-postgres.ts";
import type { RunFacts } from "../../../compute/published.ts";
import { ownValues, type Replacement, replaceRows } from "./replace-rows.ts";

let postgres: TlsPostgres;
let folder: string;
beforeAll(async () => {
  postgres = await startTlsPostgres();
  folder = await mkdtemp(path.join(tmpdir(), "nodus-replace-"));
}, 60_000);
afterAll(async () => {
  await postgres?.close();
  await rm(folder, { recursive: true, force: true });
});

const LOADED_AT = new Date("2026-03-01T00:00:00Z");
const FACTS: RunFacts = {
  ...{ status: "completed", gpu: "H100", gpuCount: 2, region: "eu-1", chargedMicros: 1_234_567_890_123n },
  ...{ startedAt: LOADED_AT, endedAt: LOADED_AT, sweepId: null, final: true },
};
let files = 0;

async function replacement(
  workloadId: string,
  {
    values = ["1"],
    generation = 1,
    table = "t",
    ...more
  }: { values?: string[]; generation?: number } & Partial<Replacement>,
): Promise<Replacement> {
  const run = { workloadId, stageId: "main", generation };
  const own = ownValues(run, LOADED_AT);
  const file = path.join(folder, `${++files}.csv`);
  await writeFile(file, values.map((v) => `${[v, ...own].map((one) => `"${one}"`).join(",")}\n`).join(""));
  const columns = [{ name: "a", type: "text" as const, empty: false }];
  const { signal } = new AbortController();
  return {
    ...{ run, table, columns, file, rows: values.length, facts: FACTS, loadedAt: LOADED_AT, signal },
    timeoutMs: 20_000,
    ...more,
  };
}

/** Does it over a connection of its own. */
async function replace(given: Replacement): Promise<void> {
  const ssl = { ca: postgres.caPem };
  const client = new pg.Client({ connectionString: postgres.url(), ssl });
  client.on("error", () => {});
  await client.connect();
  try {
    await replaceRows(client, given);
  } finally {
    await client.end();
  }
}

const rowsOf = (table: string, workloadId: string) =>
  postgres.admin(async (client) => {
    const { rows } = await client.query(`select a from ${table} where nodus_workload_id = $1 order by a`, [workloadId]);
    return rows.map(({ a }) => a as string);
  });

test("loads of many runs into a table that is not there yet all find one", async () => {
  const given = await Promise.all(
    ["r1", "r2", "r3", "r4"].map((id) => replacement(id, { values: [id], table: "fresh" })),
  );
  await Promise.all(given.map(replace));
  for (const id of ["r1", "r2", "r3", "r4"]) expect(await rowsOf("fresh", id)).toEqual([id]);
});

test("two loads of one stage at once take turns, and the rows are there once", async () => {
  const given = await Promise.all([1, 2, 3].map(() => replacement("turns", { values: ["x", "y"], table: "turns" })));
  await Promise.all(given.map(replace));
  expect(await rowsOf("turns", "turns")).toEqual(["x", "y"]);
});

test("a later generation takes the place of an earlier one, and is not replaced by it, even without rows", async () => {
  await replace(await replacement("gen", { values: ["old"] }));
  await replace(await replacement("gen", { values: [], generation: 2 }));
  expect(await rowsOf("t", "gen")).toEqual([]);
  await expect(replace(await replacement("gen", { values: ["old"] }))).rejects.toMatchObject({ word: "superseded" });
  expect(await rowsOf("t", "gen")).toEqual([]);
});

test("a load that is broken off in the middle leaves what was there", async () => {
  await replace(await replacement("broken", { values: ["kept"] }));
  const counted = await replacement("broken", { values: ["new"], rows: 2 });
  await expect(replace(counted)).rejects.toMatchObject({ word: "connection_lost" });
  const values = Array.from({ length: 200_000 }, (_, i) => `row ${i}`);
  const cut = new AbortController();
  const large = await replacement("broken", { values, signal: cut.signal });
  const done = replace(large);
  setTimeout(() => cut.abort(), 20);
  await expect(done).rejects.toBeDefined();
  expect(await rowsOf("t", "broken")).toEqual(["kept"]);
});

test("a statement that waits too long for somebody else's lock is given up", async () => {
  await replace(await replacement("locked", { values: ["kept"] }));
  await postgres.admin(async (client) => {
    await client.query("begin; lock table t in access exclusive mode");
    const waiting = await replacement("locked", { values: ["new"], timeoutMs: 300 });
    await expect(replace(waiting)).rejects.toMatchObject({ word: "connection_lost" });
    await client.query("rollback");
  });
  expect(await rowsOf("t", "locked")).toEqual(["kept"]);
});

test("the row about the run has its charge to the last micro-dollar", async () => {
  await replace(await replacement("run", {}));
  const rows = await postgres.admin(
    async (client) => (await client.query("select * from nodus_runs where workload_id = 'run'")).rows,
  );
  expect(rows).toEqual([
    {
      ...{ workload_id: "run", stage: "main", generation: 1, status: "completed", gpu: "H100", gpu_count: 2 },
      ...{ region: "eu-1", cost_usd: "1234567.890123", started_at: LOADED_AT, ended_at: LOADED_AT, sweep_id: null },
      loaded_at: LOADED_AT,
    },
  ]);
});

test("a process that falls silent before its commit keeps no other from loading the same, and writes nothing later", async () => {
  const [silent, woken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const client = new pg.Client({ connectionString: postgres.url(), ssl: { ca: postgres.caPem } });
  client.on("error", () => {});
  await client.connect();
  const query = client.query.bind(client) as (...args: unknown[]) => unknown;
  client.query = (async (...args: unknown[]) => {
    if (args[0] !== "commit") return query(...args);
    silent.resolve();
    await woken.promise;
    return query(...args);
  }) as unknown as typeof client.query;
  const late = replaceRows(client, await replacement("wl_frozen", { values: ["1", "2"] })).catch(
    (error: unknown) => error,
  );
  await silent.promise;
  await replace(await replacement("wl_frozen", { values: ["3"] }));
  woken.resolve();
  expect(await late).toMatchObject({ word: "connection_lost" });
  await client.end().catch(() => {}); // the server ended it
  expect(await rowsOf("t", "wl_frozen")).toEqual(["3"]);
}, 40_000);
