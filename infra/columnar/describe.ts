import { requireColumns } from "./columns.ts";
import { csvTable, requireAllRows } from "./csv-table.ts";
import type { Engine } from "./engine.ts";
import { describeJsonLines } from "./json-lines.ts";
import { describeParquet } from "./parquet-table.ts";
import { readCsv } from "./sql.ts";
import { ColumnarFailure, type Describe, type TableDescription, type TableLimits } from "./task.ts";

/** Reads the whole table once, so a file that this passes can be written by `toCsv` with the same columns. */
export async function describe(engine: Engine, task: Describe): Promise<TableDescription> {
  const description = await described(engine, task);
  requireWithin(description, task.limits);
  return description;
}

async function described(engine: Engine, { input, format, limits }: Describe): Promise<TableDescription> {
  if (format === "jsonl") return describeJsonLines(engine.pathOf(input), limits);
  if (format === "parquet") return describeParquet(engine, input, limits);
  const { columns, rows, lineEnd } = await csvTable(engine, input, limits);
  const [row] = await engine.rows(`select count(*) from ${readCsv(engine.file(input), columns.length, lineEnd)}`);
  requireAllRows(rows, Number(row![0]));
  return { columns, rows };
}

/** Fails unless the columns have names of their own, and they and the rows are no more than the limits allow. */
export function requireWithin({ columns, rows }: TableDescription, limits: TableLimits): void {
  requireColumns(columns, limits);
  if (rows > limits.rows) throw new ColumnarFailure({ reason: "limit", limit: "rows", count: rows });
}
