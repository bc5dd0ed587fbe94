import type { PostgresType, TableColumn } from "../../../../infra/columnar/task.ts";
import { LoadFailure } from "../load-failure.ts";

/** Most bytes of a name that PostgreSQL keeps apart. */
const NAME_BYTES = 63;
/** Names that begin so are the platform's own. */
const RESERVED = "nodus_";

/** A column of the file as it is called in the table. */
export interface TargetColumn {
  name: string;
  type: PostgresType;
  /** The file has no value in it, so it fits any type. */
  empty: boolean;
}

/** The columns that every loaded table has beside the file's. */
export const NODUS_COLUMNS = [
  { name: "nodus_workload_id", type: "text" },
  { name: "nodus_generation", type: "integer" },
  { name: "nodus_stage", type: "text" },
  { name: "nodus_loaded_at", type: "timestamp with time zone" },
] as const;

/** The file's columns with their names in lower case. Refuses names that a table can't have, or not twice. */
export function targetColumns(columns: readonly TableColumn[]): TargetColumn[] {
  const seen = new Set<string>();
  return columns.map(({ name, type, empty }) => {
    const folded = name.toLowerCase();
    if (folded.startsWith(RESERVED)) refuse(name, "begins like the platform's own columns");
    if (folded.includes("\0") || Buffer.byteLength(folded) > NAME_BYTES) refuse(name, "is no name for a column");
    if (seen.has(folded)) refuse(name, "is there twice when case does not count");
    seen.add(folded);
    return { name: folded, type, empty: empty ?? false };
  });
}

function refuse(name: string, why: string): never {
  throw new LoadFailure("unsupported_file", `The column ${JSON.stringify(name.slice(0, NAME_BYTES))} ${why}.`);
}

/** Types of existing columns that take every value of a type, or refuse a value that they cannot keep as it is. */
const FITTING: Readonly<Record<PostgresType, readonly string[]>> = {
  text: ["text", "character varying"],
  boolean: ["boolean"],
  smallint: ["smallint", "integer", "bigint", "numeric", "real", "double precision"],
  integer: ["integer", "bigint", "numeric", "double precision"],
  bigint: ["bigint", "numeric"],
  // Numbers of JSON have no width of their own: a whole one goes into whole numbers, any into floating point.
  numeric: ["numeric", "smallint", "integer", "bigint", "real", "double precision"],
  real: ["real", "double precision"],
  "double precision": ["double precision"],
  date: ["date"],
  time: ["time without time zone"],
  timetz: ["time with time zone"],
  timestamp: ["timestamp without time zone"],
  timestamptz: ["timestamp with time zone"],
  interval: ["interval"],
  uuid: ["uuid"],
  bytea: ["bytea"],
  jsonb: ["jsonb", "json"],
};

/** Types whose declared precision rounds values in silence; a text that is too long for its column is refused. */
const ROUNDING = /^(numeric|time|timestamp|interval)/;

/** Whether a column of the file can be put into an existing column. `plainType` is without its precision. */
export function fits(column: TargetColumn, plainType: string, hasPrecision: boolean): boolean {
  if (column.empty) return true;
  return FITTING[column.type].includes(plainType) && !(hasPrecision && ROUNDING.test(plainType));
}
