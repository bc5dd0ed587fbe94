import type { Engine } from "./engine.ts";
import { type ColumnChunk, requirePages } from "./parquet-pages.ts";
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
  await requirePages(engine.pathOf(input), await chunksOf(engine, file), limits);
  const described = await engine.rows(`describe select * from read_parquet(${file})`);
  return { columns: described.map(([name, type]) => columnOf(String(name), String(type))), rows };
}

async function chunksOf(engine: Engine, file: string): Promise<ColumnChunk[]> {
  const chunks = await engine.rows(
    `select least(coalesce(nullif(dictionary_page_offset, 0), data_page_offset), data_page_offset), total_compressed_size
       from parquet_metadata(${file})`,
  );
  return chunks.map(([offset, bytes]) => ({ offset: Number(offset), bytes: Number(bytes) }));
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
      return yearsBefore(`cast(cast(${column} as timestamp) as varchar)`); // microseconds are all that PostgreSQL keeps
    case "date":
      return yearsBefore(`cast(${column} as varchar)`);
    case "timestamptz": {
      // As a number: the engine rounds instants of far years when it prints them.
      const finite = yearsBefore(`cast(make_timestamp(epoch_us(${column})) as varchar) || '+00'`);
      return `case when isinf(${column}) then cast(${column} as varchar) else ${finite} end`;
    }
    case "text":
    case "jsonb":
      return `case when contains(${column}, chr(0)) then ${unrepresentable(position)} else ${column} end`;
    default:
      return `cast(${column} as varchar)`;
  }
}

/** PostgreSQL has the mark of years before 1 at the end. */
function yearsBefore(text: string): string {
  return `regexp_replace(${text}, '^([0-9-]+) \\(BC\\)(.*)$', '\\1\\2 BC')`;
}
