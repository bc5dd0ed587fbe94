import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { EXACT_CSV_TO } from "../../../infra/columnar/task.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { answer } from "../connection/farewell.ts";
import { guardedConnection } from "../connection/guarded-connection.ts";
import { type QueryColumn, requireNames } from "./column-types.ts";
import { describeQuery } from "./describe-query.ts";
import type { ExportFormat } from "./export.entity.ts";
import { ExportFailure } from "./export-failure.ts";
import type { RecordCounter } from "./record-counter.ts";

export interface QueryCopy {
  /** As `checkQuery` gave it. */
  sql: string;
  format: ExportFormat;
  /** Where the result goes; it is made anew. CSV as people read it for `csv`, else exact CSV. */
  file: string;
  /** Counts the result while it comes, and breaks it off at its limits. */
  counter: RecordCounter;
  /** How long the query may run. */
  timeoutMs: number;
  clock: Pick<Clock, "sleep">;
  /** Cuts the copy off; whoever aborts it also ends the query at the database. */
  signal: AbortSignal;
}

export interface QueryResult {
  columns: QueryColumn[];
  rows: number;
  bytes: number;
}

/** How values are written, whatever the database's own settings are: so one value has one text. */
const SETTINGS = {
  standard_conforming_strings: "on",
  client_encoding: "UTF8",
  DateStyle: "ISO, YMD",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  bytea_output: "hex",
  extra_float_digits: "1",
  // What functions have to say row by row is nobody's to read, and would be more than a connection may say.
  client_min_messages: "error",
};

const CSV = "format csv, header true";

/**
 * Writes the rows of a query into a file as they come, in one read-only transaction with one snapshot: the columns that
 * are described are those that are copied, and functions that the query calls cannot write either. Neither is ever whole
 * in memory. Throws `ExportFailure` for what the query or the limits are to blame for, and whatever broke otherwise.
 */
export async function copyQuery(client: pg.Client, ask: QueryCopy): Promise<QueryResult> {
  const soon = { clock: ask.clock, timeoutMs: LIMITS.exportAnswerMs };
  await answer(client, soon, client.query("begin isolation level repeatable read, read only"));
  const settings = { ...SETTINGS, statement_timeout: String(Math.max(Math.floor(ask.timeoutMs), 1)) };
  for (const [name, value] of Object.entries(settings))
    await answer(client, soon, client.query("select set_config($1, $2, true)", [name, value]));
  const columns = await describeQuery(client, ask.sql);
  requireNames(columns);
  const csv = ask.format === "csv";
  // The line break ends a comment that the query may end with.
  const copy = copyTo(`copy (${ask.sql}\n) to stdout (${csv ? CSV : EXACT_CSV_TO})`);
  copy.on("error", () => {}); // the pipeline hears the first; the driver tells of the connection's end as well
  const { counter } = ask;
  // The counter breaks the result off at its limit; more than what may be under way beside that is no database's to send.
  guardedConnection(client)?.allowCopy(counter.maxBytes + LIMITS.connectionRowBytes);
  await pipeline(client.query(copy), counter, createWriteStream(ask.file, { mode: 0o600 }), { signal: ask.signal });
  await answer(client, soon, client.query("commit"));
  // The stream ends before the driver has read how many there were.
  if (counter.rows !== copy.rowCount)
    throw new ExportFailure("connection_lost", "The result broke off before its end.");
  return { columns, rows: counter.rows, bytes: counter.bytes };
}

/** What the platform's own disk says. */
const DISK = new Set(["ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO", "EACCES", "ENOENT"]);
/** No class of SQLSTATE begins with an E, and the names of system errors do. */
const SQLSTATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/;

/** A failure in the words of exports, for an error while a query ran. */
export function queryFailure(error: unknown): ExportFailure {
  if (error instanceof ExportFailure) return error;
  const code = String((error as { code?: unknown } | null)?.code ?? "");
  if (DISK.has(code)) return new ExportFailure("internal", "The platform could not keep the result.", error);
  if (code === "57014")
    return new ExportFailure("query_timeout", "The database ended the query, which took too long.", error);
  // Class 08 is the connection, 57P a server that goes down; what is no SQLSTATE is the socket's.
  if (!SQLSTATE.test(code) || code.startsWith("08") || code.startsWith("57P"))
    return new ExportFailure("connection_lost", "The connection to the database was lost.", error);
  return new ExportFailure("query_failed", `The database refused the query with SQLSTATE ${code}.`, error);
}
