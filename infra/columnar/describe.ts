import { requireColumns } from "./columns.ts";
import { csvColumns } from "./csv-table.ts";
import type { Engine } from "./engine.ts";
import { describeJsonLines } from "./json-lines.ts";
import { describeParquet } from "./parquet-table.ts";
import { readCsv } from "./sql.ts";
import { ColumnarFailure, type Describe, type TableDescription, type TableLimits } from "./task.ts";

/** Reads the whole table once, so a file that this passes can be written by `toCsv` with the same columns. */
export async function describe(engine: Engine, task: Describe): Promise<TableDescription> {
  const description = await described(engine, task);
  requireColumns(description.columns, task.limits);
  requireRows(description.rows, task.limits);
  return description;
}

async function described(engine: Engine, { input, format, limits }: Describe): Promise<TableDescription> {
  if (format === "jsonl") return describeJsonLines(engine.pathOf(input), limits);
  if (format === "parquet") return describeParquet(engine, input, limits);
  const columns = await csvColumns(engine, input, limits);
  const [row] = await engine.rows(`select count(*) from ${readCsv(engine.file(input), columns.length, true)}`);
  return { columns, rows: Number(row![0]) };
}

function requireRows(rows: number, limits: TableLimits): void {
  if (rows > limits.rows) throw new ColumnarFailure({ reason: "limit", limit: "rows", count: rows });
}
