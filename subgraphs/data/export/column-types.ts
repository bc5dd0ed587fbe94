import type { ParquetType } from "../../../infra/columnar/task.ts";
import { ExportFailure } from "./export-failure.ts";

/** A column of a query's result, as the database describes it before it runs. */
export interface QueryColumn {
  name: string;
  /** The object id of its type; of the base type for a domain. */
  typeId: number;
}

/** PostgreSQL's own types have the same object ids in every database. */
const PARQUET_TYPES: Readonly<Record<number, ParquetType>> = {
  16: "bool",
  20: "int64",
  21: "int16",
  23: "int32",
  700: "float32",
  701: "float64",
  114: "json",
  3802: "json",
  1114: "local_timestamp",
  1184: "instant",
};

/** What a column is in Parquet. Any other type, such as numeric, date or an array, is text as PostgreSQL writes it. */
export function parquetType(typeId: number): ParquetType {
  return PARQUET_TYPES[typeId] ?? "text";
}

/** Every column of a file needs a name of its own. */
export function requireNames(columns: readonly QueryColumn[]): void {
  if (columns.length === 0) throw new ExportFailure("duplicate_columns", "The query has no columns.");
  const seen = new Map<string, number>();
  for (const [i, { name }] of columns.entries()) {
    if (name === "") throw new ExportFailure("duplicate_columns", `Column ${i + 1} has no name; give it an alias.`);
    const before = seen.get(name);
    if (before !== undefined)
      throw new ExportFailure(
        "duplicate_columns",
        `Columns ${before + 1} and ${i + 1} have one name; give one of them an alias.`,
      );
    seen.set(name, i);
  }
}
