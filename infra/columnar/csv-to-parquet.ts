import { scanCsv } from "./csv-scan.ts";
import { requireAllRows } from "./csv-table.ts";
import type { Engine } from "./engine.ts";
import { namingColumns } from "./failure.ts";
import { identifier, RECORD_BYTES, readExactCsv, unrepresentable } from "./sql.ts";
import type { CsvToParquet, ParquetType, RowsWritten } from "./task.ts";

const ENGINE_TYPES: Record<ParquetType, string> = {
  int16: "SMALLINT",
  int32: "INTEGER",
  int64: "BIGINT",
  float32: "FLOAT",
  float64: "DOUBLE",
  bool: "BOOLEAN",
  text: "VARCHAR",
  json: "JSON",
  // Read as text: PostgreSQL writes years before 1 in another way than the engine reads them.
  instant: "VARCHAR",
  local_timestamp: "VARCHAR",
};

const ROW_GROUP_ROWS = 122_880;

export async function csvToParquet(engine: Engine, task: CsvToParquet): Promise<RowsWritten> {
  const { columns } = task;
  const scanned = { recordBytes: RECORD_BYTES, blankIsRecord: false, lineEnd: "\n" } as const;
  const { records } = await scanCsv(engine.pathOf(task.input), scanned);
  const source = readExactCsv(
    engine.file(task.input),
    columns.map(({ type }) => ENGINE_TYPES[type]),
  );
  const selected = columns.map(({ name, type }, i) => `${selectedValue(type, i)} as ${identifier(name)}`);
  const options = `format parquet, compression zstd, row_group_size ${task.rowGroupRows ?? ROW_GROUP_ROWS}, use_tmp_file false`;
  const copy = `copy (select ${selected.join(", ")} from ${source}) to ${engine.file(task.output)} (${options})`;
  const rows = await namingColumns(columns, engine.copy(copy));
  requireAllRows(records, rows);
  return { rows };
}

function selectedValue(type: ParquetType, position: number): string {
  if (type === "instant") return timestamp(position, "TIMESTAMPTZ");
  if (type === "local_timestamp") return timestamp(position, "TIMESTAMP");
  return `c${position}`;
}

/** Parquet has no infinite timestamps, and the engine's years end before PostgreSQL's: neither is written as another. */
function timestamp(position: number, type: string): string {
  const text = `c${position}`;
  const before = `regexp_replace(${text}, '^([0-9]+-[0-9]+-[0-9]+) (.*) BC$', '\\1 (BC) \\2')`;
  const value = `try_cast(case when ends_with(${text}, ' BC') then ${before} else ${text} end as ${type})`;
  return `case when ${text} is null then null when isfinite(${value}) then ${value} else ${unrepresentable(position)} end`;
}
