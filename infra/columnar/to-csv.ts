import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Engine } from "./engine.ts";
import { namingColumns } from "./failure.ts";
import { jsonLinesAsCsv } from "./json-lines.ts";
import { postgresText } from "./parquet-table.ts";
import { EXACT_CSV_OUT, literal, readCsv, unrepresentable } from "./sql.ts";
import type { RowsWritten, ToCsv } from "./task.ts";

export async function toCsv(engine: Engine, task: ToCsv): Promise<RowsWritten> {
  const { columns, format } = task;
  if (format === "jsonl") return jsonLinesToCsv(engine, task);
  const select = format === "csv" ? selectFromCsv(engine, task) : selectFromParquet(engine, task);
  const copy = `copy (${select}) to ${engine.file(task.output)} (${EXACT_CSV_OUT})`;
  return { rows: await namingColumns(columns, engine.copy(copy)) };
}

function selectFromCsv(engine: Engine, { input, columns, constants = [] }: ToCsv): string {
  // The engine lets a character zero pass, PostgreSQL has none.
  const texts = columns.map((_, i) => `case when contains(c${i}, chr(0)) then ${unrepresentable(i)} else c${i} end`);
  return `select ${[...texts, ...constants.map(literal)].join(", ")} from ${readCsv(engine.file(input), columns.length, true)}`;
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
