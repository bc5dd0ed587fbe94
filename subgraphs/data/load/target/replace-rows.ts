import { createReadStream } from "node:fs";
import pg from "pg";
import { EXACT_CSV_FROM } from "../../../../infra/columnar/task.ts";
import { LIMITS } from "../../../../infra/kernel/limits.ts";
import type { RunFacts } from "../../../compute/published.ts";
import { LoadFailure, targetFailure } from "../load-failure.ts";
import { copyIn } from "./copy-in.ts";
import { requireLatest, type TargetRun, writeRun } from "./run-row.ts";
import { NODUS_COLUMNS, type TargetColumn } from "./target-columns.ts";
import { indexTable, lockInTarget, prepareTable, qualified } from "./target-table.ts";

/** What goes into a table, and from where. */
export interface Replacement {
  run: TargetRun;
  table: string;
  columns: readonly TargetColumn[];
  /** Exact CSV: the columns' values, then those of the platform's own columns. */
  file: string;
  rows: number;
  facts: RunFacts;
  loadedAt: Date;
  /** How long one statement may take. */
  timeoutMs: number;
  signal: AbortSignal;
}

/** How the texts of values are read, whatever the database's own settings are. */
const SETTINGS = {
  client_encoding: "UTF8",
  DateStyle: "ISO, YMD",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  // What triggers have to say row by row is nobody's to read, and would be more than a connection may say.
  client_min_messages: "error",
  // The session of a process that was frozen ends with what it locks: another one has the load by then.
  idle_in_transaction_session_timeout: String(LIMITS.idleTransactionMs),
};

/**
 * Puts a run's rows in the place of those that it had in the table, in one transaction with the row about the run: either
 * all of it is there afterwards or nothing has changed. Two loads of one stage take turns. Throws `LoadFailure`.
 */
export async function replaceRows(client: pg.Client, replacement: Replacement): Promise<void> {
  try {
    await begin(client, replacement);
    await inTransaction(client, replacement);
    await client.query("commit");
  } catch (error) {
    // One that is lost rolls back by itself.
    await client.query("rollback").catch(() => {});
    throw targetFailure(error);
  }
}

async function begin(client: pg.Client, { timeoutMs }: Replacement): Promise<void> {
  await client.query("begin isolation level read committed, read write");
  const settings = { ...SETTINGS, statement_timeout: String(Math.max(Math.floor(timeoutMs), 1)) };
  for (const [name, value] of Object.entries(settings))
    await client.query("select set_config($1, $2, true)", [name, value]);
}

async function inTransaction(client: pg.Client, replacement: Replacement): Promise<void> {
  const { run, table, columns, facts, loadedAt } = replacement;
  await lockInTarget(client, `stage/${run.workloadId}/${run.stageId}`);
  await requireLatest(client, run);
  const prepared = await prepareTable(client, table, columns);
  if (prepared === "found")
    await client.query(`delete from ${qualified(table)} where nodus_workload_id = $1 and nodus_stage = $2`, [
      run.workloadId,
      run.stageId,
    ]);
  if (replacement.rows > 0) await copyRows(client, replacement);
  if (prepared === "made") await indexTable(client, table); // once, over all rows
  await writeRun(client, run, facts, loadedAt);
}

async function copyRows(client: pg.Client, { table, columns, file, rows, signal }: Replacement): Promise<void> {
  const names = [...columns, ...NODUS_COLUMNS].map(({ name }) => pg.escapeIdentifier(name));
  const statement = `copy ${qualified(table)} (${names.join(", ")}) from stdin (${EXACT_CSV_FROM})`;
  const taken = await copyIn(client, statement, chunksOf(file, signal));
  if (taken !== rows) throw new LoadFailure("connection_lost", "The database took another number of rows.");
}

const READ_BYTES = 256 * 1024;

/** Opens the file only when somebody reads, who is then told of its errors. */
async function* chunksOf(file: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  const stream = createReadStream(file, { highWaterMark: READ_BYTES, signal });
  stream.on("error", () => {}); // the loop is told; one after its end is nobody's
  yield* stream as AsyncIterable<Buffer>;
}

/** The platform's own values of every row, in the order of their columns. */
export function ownValues({ workloadId, stageId, generation }: TargetRun, loadedAt: Date): string[] {
  return [workloadId, String(generation), stageId, loadedAt.toISOString()];
}
