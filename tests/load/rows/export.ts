import { createReadStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import type pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { runColumnar } from "../../../infra/columnar/run-columnar.ts";
import { systemClock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { openDiskStore } from "../../../infra/objects/disk-store.ts";
import { readCredential } from "../../../subgraphs/data/connection/credential-shape.ts";
import { guardedConnection } from "../../../subgraphs/data/connection/guarded-connection.ts";
import { logIn } from "../../../subgraphs/data/connection/open-database.ts";
import { parquetType } from "../../../subgraphs/data/export/column-types.ts";
import { copyQuery } from "../../../subgraphs/data/export/copy-query.ts";
import type { ExportFormat } from "../../../subgraphs/data/export/export.entity.ts";
import { RecordCounter } from "../../../subgraphs/data/export/record-counter.ts";
import { startTlsPostgres, type TlsPostgres } from "../../support/tls-postgres.ts";
import type { Bench } from "../bench-place.ts";
import { type BenchRow, type Outcome, percent } from "../bench-row.ts";

const ROWS = 1_000_000;
const SQL = "select * from public.visit";
const LEAST_SHARE = 0.25;

/** A query's way into an asset, from login to stored file, beside COPY of the same rows thrown away. */
async function run(bench: Bench): Promise<Outcome[]> {
  const postgres = await startTlsPostgres();
  bench.onClose("the customer's PostgreSQL", () => postgres.close());
  await postgres.admin((client) => client.query(FILL));
  const baseline = await rate(() => withClient(postgres, rawCopy));
  const folder = path.join(bench.folder, "export");
  await mkdir(folder);
  const outcomes: Outcome[] = [];
  for (const format of ["csv", "parquet"] as const) {
    const cpuBefore = process.cpuUsage();
    const nodus = await rate(() => withClient(postgres, (client) => exportOnce(client, folder, format)));
    const { user, system } = process.cpuUsage(cpuBefore);
    outcomes.push(outcomeOf(format, nodus, baseline, (user + system) / (ROWS / 1_000)));
  }
  await rm(folder, { recursive: true });
  return outcomes;
}

const FILL = `create table public.visit as select i::int8 as id, 'user ' || (i % 100000) as name,
    (i * 1.37)::numeric(14, 2) as amount, random() as score, (i % 3 = 0) as flag,
    timestamptz '2020-01-01 00:00:00+00' + i * interval '1 second' as at, nullif(md5(i::text), md5('7')) as hash
  from generate_series(1, ${ROWS}) i;
  grant select on public.visit to customer`;

function outcomeOf(format: ExportFormat, nodus: number, baseline: number, cpuMicros: number): Outcome {
  const share = nodus / baseline;
  return {
    what: `export of a query as ${format}`,
    nodus: `${Math.round(nodus)} rows/s`,
    baseline: `${Math.round(baseline)} rows/s`,
    ratio: percent(share),
    cpu: `${Math.round(cpuMicros)} per 1000`,
    aim: `≥ ${percent(LEAST_SHARE)}`,
    met: share >= LEAST_SHARE,
    note: `${ROWS} rows of 7 columns over TLS, stored under their hash; the processor time is the platform's, not the child's; baseline: COPY of the same rows to nowhere`,
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
  const client = await logIn(
    credential.login,
    { exceptions, clock: systemClock },
    { timeoutMs: 10_000, applicationName: "nodus-bench" },
  );
  guardedConnection(client)?.allowCopy(LIMITS.exportBytes); // for the copies that are the baseline
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

async function rawCopy(client: pg.Client): Promise<void> {
  let bytes = 0;
  for await (const chunk of client.query(copyTo(`copy (${SQL}) to stdout (format csv)`)))
    bytes += (chunk as Buffer).length;
  if (bytes === 0) throw new Error("COPY gave nothing");
}

async function exportOnce(client: pg.Client, folder: string, format: ExportFormat): Promise<void> {
  const signal = new AbortController().signal;
  const counter = new RecordCounter({ rows: ROWS, bytes: LIMITS.exportBytes }, { header: format === "csv" });
  const file = path.join(folder, "result.csv");
  const { columns, rows } = await copyQuery(client, {
    sql: SQL,
    format,
    file,
    counter,
    clock: systemClock,
    timeoutMs: 600_000,
    signal,
  });
  if (rows !== ROWS) throw new Error(`${rows} rows came instead of ${ROWS}`);
  const types = columns.map(({ name, typeId }) => ({ name, type: parquetType(typeId) }));
  if (format === "parquet")
    await runColumnar(
      { kind: "csvToParquet", input: "result.csv", output: "data.parquet", columns: types },
      { folder, memoryLimitBytes: LIMITS.columnarMemoryBytes, timeoutMs: 600_000, signal },
    );
  const made = format === "csv" ? file : path.join(folder, "data.parquet");
  const store = await openDiskStore(path.join(folder, "store"));
  await store.put(createReadStream(made), { maxBytes: LIMITS.exportBytes });
}

export const exportOfQuery: BenchRow = { name: "export", run };
