import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import type pg from "pg";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import { runColumnar } from "../../../infra/columnar/run-columnar.ts";
import { EXACT_CSV_FROM, EXACT_CSV_TO, type TableFormat } from "../../../infra/columnar/task.ts";
import { systemClock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { readCredential } from "../../../subgraphs/data/connection/credential-shape.ts";
import { guardedConnection } from "../../../subgraphs/data/connection/guarded-connection.ts";
import { logIn } from "../../../subgraphs/data/connection/open-database.ts";
import { ownValues, replaceRows } from "../../../subgraphs/data/load/target/replace-rows.ts";
import { targetColumns } from "../../../subgraphs/data/load/target/target-columns.ts";
import { startTlsPostgres, type TlsPostgres } from "../../support/tls-postgres.ts";
import type { Bench } from "../bench-place.ts";
import { type BenchRow, type Outcome, percent } from "../bench-row.ts";

const ROWS = 1_000_000;
const LEAST_SHARE = 0.25;
const FACTS = {
  ...{ status: "completed", gpu: null, gpuCount: 0, region: "local", chargedMicros: 1n },
  ...{ startedAt: null, endedAt: null, sweepId: null, final: true },
};
const TABLE_LIMITS = {
  rows: LIMITS.loadRows,
  columns: LIMITS.loadColumns,
  recordBytes: LIMITS.loadRecordBytes,
  rowGroupBytes: LIMITS.loadRowGroupBytes,
};

/** A file's way into a table, judged, rewritten and loaded in one transaction, beside COPY of the same rows as they are. */
async function run(bench: Bench): Promise<Outcome[]> {
  const postgres = await startTlsPostgres();
  bench.onClose("the customer's PostgreSQL", () => postgres.close());
  const folder = path.join(bench.folder, "load");
  await mkdir(folder);
  await withClient(postgres, (client) => writeFiles(client, folder));
  await asParquet(folder);
  const baseline = await rate(() => withClient(postgres, (client) => rawCopy(client, folder)));
  const outcomes: Outcome[] = [];
  for (const format of ["csv", "parquet"] as const) {
    const cpuBefore = process.cpuUsage();
    const nodus = await rate(() => withClient(postgres, (client) => loadOnce(client, folder, format)));
    const { user, system } = process.cpuUsage(cpuBefore);
    outcomes.push(outcomeOf(format, nodus, baseline, (user + system) / (ROWS / 1_000)));
  }
  await rm(folder, { recursive: true });
  return outcomes;
}

const SELECT = `select i::int8 as id, 'user ' || (i % 100000) as name, (i * 1.37)::float8 as amount, (i % 3 = 0) as flag,
    timestamptz '2020-01-01 00:00:00+00' + i * interval '1 second' as at, nullif(md5(i::text), md5('7')) as hash
  from generate_series(1, ${ROWS}) i`;

async function writeFiles(client: pg.Client, folder: string): Promise<void> {
  const write = (options: string, file: string) =>
    pipeline(
      client.query(copyTo(`copy (${SELECT}) to stdout (${options})`)),
      createWriteStream(path.join(folder, file)),
    );
  await client.query("set TimeZone = 'UTC'");
  await write("format csv, header true", "rows.csv");
  await write(EXACT_CSV_TO, "exact.csv");
  await client.query("create table raw (id int8, name text, amount float8, flag bool, at timestamptz, hash text)");
}

async function asParquet(folder: string): Promise<void> {
  const types = { id: "int64", name: "text", amount: "float64", flag: "bool", at: "instant", hash: "text" } as const;
  const columns = Object.entries(types).map(([name, type]) => ({ name, type }));
  await runColumnar({ kind: "csvToParquet", input: "exact.csv", output: "rows.parquet", columns }, child(folder));
}

function child(folder: string) {
  const { signal } = new AbortController();
  return { folder, memoryLimitBytes: LIMITS.columnarMemoryBytes, timeoutMs: 600_000, signal };
}

async function rawCopy(client: pg.Client, folder: string): Promise<void> {
  const copy = client.query(copyFrom(`copy raw from stdin (${EXACT_CSV_FROM})`));
  await pipeline(createReadStream(path.join(folder, "exact.csv"), { highWaterMark: 262_144 }), copy);
  if (copy.rowCount !== ROWS) throw new Error(`${copy.rowCount} rows went instead of ${ROWS}`);
}

async function loadOnce(client: pg.Client, folder: string, format: TableFormat): Promise<void> {
  const loadedAt = systemClock.now();
  const run = { workloadId: `wl_bench-${format}`, stageId: "main", generation: 1 };
  const file = { input: `rows.${format}`, format, output: "out.csv", limits: TABLE_LIMITS };
  const constants = ownValues(run, loadedAt);
  const { columns, rows } = await runColumnar({ kind: "rewrite", ...file, constants }, child(folder));
  await replaceRows(client, {
    ...{ run, table: `loaded_${format}`, columns: targetColumns(columns), rows, facts: FACTS, loadedAt },
    ...{ file: path.join(folder, "out.csv"), timeoutMs: 600_000, signal: new AbortController().signal },
  });
}

function outcomeOf(format: TableFormat, nodus: number, baseline: number, cpuMicros: number): Outcome {
  const share = nodus / baseline;
  return {
    what: `load of a ${format} output`,
    nodus: `${Math.round(nodus)} rows/s`,
    baseline: `${Math.round(baseline)} rows/s`,
    ratio: percent(share),
    cpu: `${Math.round(cpuMicros)} per 1000`,
    aim: `≥ ${percent(LEAST_SHARE)}`,
    met: share >= LEAST_SHARE,
    note: `${ROWS} rows of 6 columns and the platform's 4, over TLS, read twice before; the processor time is the platform's, not the child's; baseline: COPY of the same 6 columns into a table without an index`,
  };
}

async function rate(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return ROWS / ((performance.now() - startedAt) / 1000);
}

async function withClient(postgres: TlsPostgres, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const credential = readCredential("postgres", postgres.secret());
  if (credential.kind !== "database") throw new Error("the secret leads to no database");
  const exceptions = new PrivateExceptions(["localhost", "127.0.0.0/8"]);
  const ask = { timeoutMs: 10_000, applicationName: "nodus-bench" };
  const client = await logIn(credential.login, { exceptions, clock: systemClock }, ask);
  guardedConnection(client)?.allowCopy(LIMITS.exportBytes); // for the copies that are the baseline
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

export const sinkLoad: BenchRow = { name: "load", run };
