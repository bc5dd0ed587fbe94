import { createWriteStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { LineEnd } from "./csv-scan.ts";
import { type CsvTable, csvTable, requireAllRows } from "./csv-table.ts";
import { describe, requireWithin } from "./describe.ts";
import type { Engine } from "./engine.ts";
import { namingColumns } from "./failure.ts";
import { jsonLinesAsCsv } from "./json-lines.ts";
import { postgresText } from "./parquet-table.ts";
import { EXACT_CSV_OUT, literal, readCsv, unrepresentable } from "./sql.ts";
import type { Rewrite, RowsWritten, TableDescription, ToCsv } from "./task.ts";

export async function toCsv(engine: Engine, task: ToCsv): Promise<RowsWritten> {
  if (task.format === "jsonl") return jsonLinesToCsv(engine, task);
  if (task.format === "csv") return csvToCsv(engine, task, await csvTable(engine, task.input, task.limits));
  return copy(engine, task, selectFromParquet(engine, task));
}

export async function rewrite(engine: Engine, task: Rewrite): Promise<TableDescription> {
  if (task.format === "csv") return rewriteCsv(engine, task);
  const table = await describe(engine, { ...task, kind: "describe" });
  const { columns, rows } = table;
  if (rows > 0 && columns.length > 0) await toCsv(engine, { ...task, kind: "toCsv", columns });
  else await writeFile(engine.pathOf(task.output), "", { mode: 0o600 });
  return table;
}

/** Read by the engine once, where `describe` and `toCsv` would have it read twice. */
async function rewriteCsv(engine: Engine, task: Rewrite): Promise<TableDescription> {
  const table = await csvTable(engine, task.input, task.limits);
  const { columns, rows } = table;
  requireWithin(table, task.limits);
  await csvToCsv(engine, { ...task, kind: "toCsv", columns }, table);
  return { columns, rows };
}

async function csvToCsv(engine: Engine, task: ToCsv, { rows, lineEnd }: CsvTable): Promise<RowsWritten> {
  const written = await copy(engine, task, selectFromCsv(engine, task, lineEnd));
  requireAllRows(rows, written.rows);
  return written;
}

async function copy(engine: Engine, { columns, output }: ToCsv, select: string): Promise<RowsWritten> {
  const sql = `copy (${select}) to ${engine.file(output)} (${EXACT_CSV_OUT})`;
  return { rows: await namingColumns(columns, engine.copy(sql)) };
}

function selectFromCsv(engine: Engine, { input, columns, constants = [] }: ToCsv, lineEnd: LineEnd | null): string {
  // The engine lets a character zero pass, PostgreSQL has none.
  const texts = columns.map((_, i) => `case when contains(c${i}, chr(0)) then ${unrepresentable(i)} else c${i} end`);
  const source = readCsv(engine.file(input), columns.length, lineEnd);
  return `select ${[...texts, ...constants.map(literal)].join(", ")} from ${source}`;
}

function selectFromParquet(engine: Engine, { input, columns, constants = [] }: ToCsv): string {
  return `select ${[...columns.map(postgresText), ...constants.map(literal)].join(", ")} from read_parquet(${engine.file(input)})`;
}

/** Written here: the engine would make doubles of numbers. */
async function jsonLinesToCsv(engine: Engine, task: ToCsv): Promise<RowsWritten> {
  const { input, output } = task;
  let rows = 0;
  const records = async function* () {
    for await (const records of jsonLinesAsCsv(engine.pathOf(input), task)) {
      yield records.text;
      rows += records.rows;
    }
  };
  await pipeline(Readable.from(records()), createWriteStream(engine.pathOf(output), { mode: 0o600 }));
  return { rows };
}
