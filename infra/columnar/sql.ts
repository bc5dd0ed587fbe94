import type { LineEnd } from "./csv-scan.ts";

/** A text as an SQL literal. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A name as an SQL identifier. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Longest record that is read, and the buffer for it; the engine holds several of these. */
export const RECORD_BYTES = 8 * 1024 * 1024;
const BUFFER_BYTES = 2 * RECORD_BYTES;

/** What every reading of CSV has in common: nothing is guessed. */
const CSV = `auto_detect = false, delim = ',', quote = '"', escape = '"', strict_mode = true,
  allow_quoted_nulls = false, max_line_size = ${RECORD_BYTES}, buffer_size = ${BUFFER_BYTES}`;

/** Reads exact CSV; the columns are named by position, so no name can collide. */
export function readExactCsv(file: string, types: readonly string[]): string {
  const columns = types.map((type, i) => `${literal(`c${i}`)}: ${literal(type)}`);
  return `read_csv(${file}, ${CSV}, header = false, nullstr = '\\N', new_line = '\\n', columns = {${columns.join(", ")}})`;
}

/**
 * Reads CSV as people write it: a header, an unquoted empty field is NULL, a quoted one is an empty text. Two bytes as a
 * line end are left to the engine to find: told of them, it loses rows.
 */
export function readCsv(file: string, columns: number, lineEnd: LineEnd | null): string {
  const texts = Array.from({ length: columns }, (_, i) => `${literal(`c${i}`)}: 'VARCHAR'`);
  const told = lineEnd === null || lineEnd === "\r\n" ? "" : `new_line = '${lineEnd === "\n" ? "\\n" : "\\r"}', `;
  return `read_csv(${file}, ${CSV}, header = true, nullstr = '', ${told}columns = {${texts.join(", ")}})`;
}

/** Writes exact CSV. */
export const EXACT_CSV_OUT = "format csv, header false, nullstr '\\N', force_quote *, use_tmp_file false";

/** Begins the engine's own message of a value that the output cannot hold; the column's position follows. */
export const UNREPRESENTABLE = "nodus:unrepresentable:";

/** An expression that fails the task, naming the column by its position. */
export function unrepresentable(position: number): string {
  return `error(${literal(`${UNREPRESENTABLE}${position}:`)})`;
}
