import { inspect } from "node:util";
import { ClientError } from "../../cli/client.ts";
import { Drain } from "../../infra/telemetry/drain.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { Bench } from "./bench-place.ts";
import type { BenchRow, Outcome } from "./bench-row.ts";
import { loadAverage, machineFacts } from "./machine-facts.ts";
import { admissions } from "./rows/admissions.ts";
import { decision } from "./rows/decision.ts";
import { entityJoin } from "./rows/entity-join.ts";
import { entityJoinSql } from "./rows/entity-join-sql.ts";
import { exportOfQuery } from "./rows/export.ts";
import { firstLine } from "./rows/first-line.ts";
import { lineLatency } from "./rows/line-latency.ts";
import { listLength } from "./rows/list-length.ts";
import { liveUpdates } from "./rows/live-updates.ts";
import { logThroughput } from "./rows/log-throughput.ts";
import { memory } from "./rows/memory.ts";
import { placements } from "./rows/placements.ts";
import { queues } from "./rows/queues.ts";
import { restRead } from "./rows/rest-read.ts";
import { sinkLoad } from "./rows/sink-load.ts";
import { uploadRate } from "./rows/upload.ts";
import { renderTable } from "./table.ts";

/** Memory first: the platform that it measures has done nothing yet. */
const ROWS: readonly BenchRow[] = [
  memory,
  firstLine,
  lineLatency,
  logThroughput,
  uploadRate,
  entityJoin,
  entityJoinSql,
  restRead,
  admissions,
  decision,
  placements,
  queues,
  liveUpdates,
  listLength,
  exportOfQuery,
  sinkLoad,
];

export interface BenchOptions {
  /** Names of the rows to run; all unless given. */
  row?: readonly string[];
  /** Folder for processor profiles of the processes that the bench starts. */
  profile?: string;
}

/**
 * Measures the platform beside the bare minimum of the same work and prints one table. An aim that is missed is told and
 * is no failure. Everything is made in a temporary folder and removed at the end, on Ctrl-C as well.
 */
export async function bench(options: BenchOptions): Promise<void> {
  const rows = chosen(options.row);
  const drain = new Drain(createLogger({ level: "warn", role: "bench" }));
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.on(signal, () => void drain.close().then(() => process.exit(130)));
  try {
    const place = new Bench(drain, options.profile ?? null);
    process.stdout.write(await machineFacts((await place.postgres()).url));
    const outcomes: Outcome[] = [];
    for (const row of rows) if (!drain.closing) outcomes.push(...(await runRow(row, place, drain)));
    if (!drain.closing) process.stdout.write(`\n${renderTable(outcomes)}`);
  } finally {
    await drain.close();
  }
}

/** A row that breaks is a line of the table; the others still run. Unless all was stopped: then it had to break. */
async function runRow(row: BenchRow, place: Bench, drain: Drain): Promise<Outcome[]> {
  const startedAt = performance.now();
  process.stderr.write(`${row.name} … `);
  try {
    const outcomes = await row.run(place);
    process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(1)} s (load ${loadAverage()})\n`);
    return outcomes;
  } catch (error) {
    if (drain.closing) return [];
    process.stderr.write(`broke: ${inspect(error, { depth: 0 })}\n`);
    const said = (error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND" ? DEVELOPMENT : "broke; see above";
    return [{ what: row.name, nodus: "broke", baseline: "", ratio: "", cpu: "", aim: "", met: null, note: said }];
  }
}

const DEVELOPMENT = "needs the development packages: npm ci without --omit=dev";

function chosen(names: readonly string[] | undefined): readonly BenchRow[] {
  if (!names?.length) return ROWS;
  const unknown = names.filter((name) => !ROWS.some((row) => row.name === name));
  if (unknown.length > 0)
    throw new ClientError(
      `There is no row ${unknown.join(", ")}. There are ${ROWS.map((row) => row.name).join(", ")}.`,
    );
  return ROWS.filter((row) => names.includes(row.name));
}
