/**
 * Work on tables in files, as data: it is sent to a child process, so nothing in it can be more than text and numbers.
 * Files are named within one folder, which is all of the machine that the child's engine may touch.
 *
 * `exact CSV` is what the tasks and PostgreSQL's COPY pass to each other: comma, no header, every value in quotes, NULL
 * as an unquoted `\N`. So an empty text, the text `\N` and NULL are three different things. `EXACT_CSV` asks COPY for it.
 */
export type ColumnarTask = CsvToParquet | Describe | ToCsv | Rewrite;

/** Options of PostgreSQL's COPY FROM for exact CSV. */
export const EXACT_CSV_FROM = "format csv, null '\\N'";
/** Options of PostgreSQL's COPY TO for exact CSV. */
export const EXACT_CSV_TO = `${EXACT_CSV_FROM}, force_quote *`;

/** What a column of a Parquet file that is written may hold; each is nullable. Timestamps have microseconds. */
export type ParquetType =
  | "int16"
  | "int32"
  | "int64"
  | "float32"
  | "float64"
  | "bool"
  | "text"
  | "json"
  /** An instant, kept in UTC. */
  | "instant"
  /** Date and time of day without a zone. */
  | "local_timestamp";

/** Writes exact CSV as Parquet. Its answer counts the rows. */
export interface CsvToParquet {
  readonly kind: "csvToParquet";
  readonly input: string;
  readonly output: string;
  readonly columns: readonly { readonly name: string; readonly type: ParquetType }[];
  /** Rows of one row group, which is held in memory; fewer for wide rows. */
  readonly rowGroupRows?: number;
}

export type TableFormat = "csv" | "jsonl" | "parquet";

/** Most of what a table in a file may have. What goes beyond is a failure `limit` that names it. */
export interface TableLimits {
  readonly rows: number;
  readonly columns: number;
  /** Of one CSV record, JSON line, or Parquet footer, and of one Parquet page, decoded. */
  readonly recordBytes: number;
  /** Of one Parquet row group, decoded. */
  readonly rowGroupBytes: number;
}

/** Reads a table once and says what is in it. CSV must have a header of unique names. */
export interface Describe {
  readonly kind: "describe";
  readonly input: string;
  readonly format: TableFormat;
  readonly limits: TableLimits;
}

/** Writes a table as exact CSV whose values PostgreSQL's input functions take for the described types. */
export interface ToCsv {
  readonly kind: "toCsv";
  readonly input: string;
  readonly format: TableFormat;
  readonly output: string;
  /** As `describe` answered them; all of them, in the order to write. */
  readonly columns: readonly TableColumn[];
  /** Texts that every row ends with, beside the table's own values. */
  readonly constants?: readonly string[];
  readonly limits: TableLimits;
}

/**
 * Describes a table and then writes it as exact CSV with all of its columns, in one process. Without rows or
 * without columns the CSV is empty.
 */
export interface Rewrite extends Omit<ToCsv, "kind" | "columns"> {
  readonly kind: "rewrite";
}

/** A PostgreSQL type that holds every value of a column without loss. */
export type PostgresType =
  | "text"
  | "boolean"
  | "smallint"
  | "integer"
  | "bigint"
  | "numeric"
  | "real"
  | "double precision"
  | "date"
  | "time"
  | "timetz"
  | "timestamp"
  | "timestamptz"
  | "interval"
  | "uuid"
  | "bytea"
  | "jsonb";

export interface TableColumn {
  readonly name: string;
  readonly type: PostgresType;
  /** Of JSON lines: no line has a value for it, so `type` is no more than a guess. */
  readonly empty?: boolean;
}

export interface RowsWritten {
  readonly rows: number;
}

export interface TableDescription {
  readonly columns: readonly TableColumn[];
  readonly rows: number;
}

export type ColumnarAnswer<T extends ColumnarTask> = T extends Describe | Rewrite ? TableDescription : RowsWritten;

/** Why a task failed. Nothing of it is a value of the table; names of columns are. */
export interface ColumnarReason {
  readonly reason: /** It took longer than it may. */
    | "timeout"
    /** The caller's signal aborted. */
    | "cancelled"
    /** It needs more memory than it may use. */
    | "memory"
    /** The disk, or its share for intermediate results, is full. */
    | "disk"
    /** The input is damaged, or not of its format. */
    | "unreadable"
    /** A value that the output's type cannot hold; `column` tells where. */
    | "unrepresentable"
    /** `limit` is exceeded; `count` is what was reached where that is known. */
    | "limit"
    /** A column's name is empty or there twice. */
    | "column_names"
    /** A column has values of different types, or of one that no table takes. */
    | "column_type"
    /** The child ended by a fault of its own, without an answer or with none that is understood. */
    | "crashed"
    /** The child was not started, or something outside ended it: nothing is known of the table. */
    | "lost";
  readonly column?: string;
  /** From 1. */
  readonly line?: number;
  readonly limit?: keyof TableLimits;
  readonly count?: number;
}

/** A task that failed; its message holds no value of the table. */
export class ColumnarFailure extends Error {
  override readonly name = "ColumnarFailure";
  readonly reason: ColumnarReason["reason"];
  readonly detail: ColumnarReason;

  constructor(detail: ColumnarReason) {
    const at = [
      detail.column === undefined ? "" : ` in column ${JSON.stringify(detail.column)}`,
      detail.line === undefined ? "" : ` at line ${detail.line}`,
      detail.limit === undefined ? "" : ` of ${detail.limit}`,
      detail.count === undefined ? "" : ` at ${detail.count}`,
    ];
    super(`the table could not be worked on: ${detail.reason}${at.join("")}`);
    this.reason = detail.reason;
    this.detail = detail;
  }
}
