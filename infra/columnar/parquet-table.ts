import type { Engine } from "./engine.ts";
import { identifier, unrepresentable } from "./sql.ts";
import {
  ColumnarFailure,
  type PostgresType,
  type TableColumn,
  type TableDescription,
  type TableLimits,
} from "./task.ts";

/** PostgreSQL has no unsigned integers and no 128-bit ones: each gets the next type that holds it. */
const TYPES: Readonly<Record<string, PostgresType>> = {
  BOOLEAN: "boolean",
  TINYINT: "smallint",
  SMALLINT: "smallint",
  INTEGER: "integer",
  BIGINT: "bigint",
  UTINYINT: "bigint",
  USMALLINT: "bigint",
  UINTEGER: "bigint",
  UBIGINT: "numeric",
  HUGEINT: "numeric",
  UHUGEINT: "numeric",
  FLOAT: "real",
  DOUBLE: "double precision",
  VARCHAR: "text",
  BLOB: "bytea",
  UUID: "uuid",
  DATE: "date",
  TIME: "time",
  "TIME WITH TIME ZONE": "timetz",
  TIMESTAMP: "timestamp",
  TIMESTAMP_S: "timestamp",
  TIMESTAMP_MS: "timestamp",
  TIMESTAMP_NS: "timestamp",
  "TIMESTAMP WITH TIME ZONE": "timestamptz",
  INTERVAL: "interval",
  JSON: "jsonb",
};

/** Only flat columns: a nested one is a failure `column_type`. */
export async function describeParquet(engine: Engine, input: string, limits: TableLimits): Promise<TableDescription> {
  const file = engine.file(input);
  const [facts] = await engine.rows(`select num_rows, footer_size from parquet_file_metadata(${file})`);
  const [rows, footerBytes] = [Number(facts?.[0] ?? 0), Number(facts?.[1] ?? 0)];
  if (footerBytes > limits.recordBytes)
    throw new ColumnarFailure({ reason: "limit", limit: "recordBytes", count: footerBytes });
  const [groups] = await engine.rows(
    `select max(bytes) from (select sum(total_uncompressed_size) as bytes from parquet_metadata(${file}) group by row_group_id)`,
  );
  const groupBytes = Number(groups?.[0] ?? 0);
  if (groupBytes > limits.rowGroupBytes)
    throw new ColumnarFailure({ reason: "limit", limit: "rowGroupBytes", count: groupBytes });
  const described = await engine.rows(`describe select * from read_parquet(${file})`);
  return { columns: described.map(([name, type]) => columnOf(String(name), String(type))), rows };
}

function columnOf(name: string, engineType: string): TableColumn {
  const type = engineType.startsWith("DECIMAL(") ? "numeric" : TYPES[engineType];
  if (!type) throw new ColumnarFailure({ reason: "column_type", column: name });
  return { name, type };
}

/** The column's values as PostgreSQL reads them. */
export function postgresText({ name, type }: TableColumn, position: number): string {
  const column = identifier(name);
  switch (type) {
    case "bytea":
      return `'\\x' || lower(hex(${column}))`;
    case "timestamp":
    case "timestamptz":
    case "date":
      // PostgreSQL writes years before 1 with the mark at the end; microseconds are all that it keeps.
      return `regexp_replace(cast(${finestOf(type, column)} as varchar), '^([0-9-]+) \\(BC\\)(.*)$', '\\1\\2 BC')`;
    case "text":
    case "jsonb":
      return `case when contains(${column}, chr(0)) then ${unrepresentable(position)} else ${column} end`;
    default:
      return `cast(${column} as varchar)`;
  }
}

function finestOf(type: "timestamp" | "timestamptz" | "date", column: string): string {
  return type === "timestamp" ? `cast(${column} as timestamp)` : column;
}
