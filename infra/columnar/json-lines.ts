import { createReadStream } from "node:fs";
import {
  ColumnarFailure,
  type PostgresType,
  type TableColumn,
  type TableDescription,
  type TableLimits,
  type ToCsv,
} from "./task.ts";

/** A number as it was written: neither its digits nor its scale may change on the way. */
class Digits {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Members = Record<string, unknown>;

/** The columns in the order in which they first appear, each with the one type that its values have. */
export async function describeJsonLines(file: string, limits: TableLimits): Promise<TableDescription> {
  const types = new Map<string, PostgresType | null>();
  let rows = 0;
  for await (const { members, line } of jsonLines(file, limits)) {
    if (++rows > limits.rows) throw new ColumnarFailure({ reason: "limit", limit: "rows", count: rows });
    for (const [name, value] of Object.entries(members)) {
      const type = typeOf(value);
      const known = types.get(name);
      if (known && type && known !== type) throw new ColumnarFailure({ reason: "column_type", column: name, line });
      if (!known) types.set(name, type);
    }
    if (types.size > limits.columns)
      throw new ColumnarFailure({ reason: "limit", limit: "columns", count: types.size });
  }
  // A column of nulls alone fits any type; text is the one that a later file's values can always be made.
  const columns = [...types].map(
    ([name, type]): TableColumn => (type ? { name, type } : { name, type: "text", empty: true }),
  );
  return { columns, rows };
}

/** Some records of exact CSV. */
export interface CsvRecords {
  text: string;
  rows: number;
}

const WRITTEN_AT_ONCE = 65_536;

/** The table as exact CSV, a member that is missing as NULL. */
export async function* jsonLinesAsCsv(
  file: string,
  { columns, constants = [], limits }: Pick<ToCsv, "columns" | "constants" | "limits">,
): AsyncGenerator<CsvRecords> {
  const last = constants.map(quoted);
  let records: CsvRecords = { text: "", rows: 0 };
  for await (const { members, line } of jsonLines(file, limits)) {
    const fields = columns.map(({ name }) => fieldOf(Object.hasOwn(members, name) ? members[name] : null, name, line));
    records.text += `${[...fields, ...last].join(",")}\n`;
    records.rows++;
    if (records.text.length < WRITTEN_AT_ONCE) continue;
    yield records;
    records = { text: "", rows: 0 };
  }
  if (records.rows > 0) yield records;
}

/** Escapes of the character zero and of half a character, neither of which PostgreSQL's jsonb takes. */
const REFUSED_ESCAPE = /(?:^|[^\\])(?:\\\\)*\\u(?:0000|d[89a-f])/;

function fieldOf(value: unknown, column: string, line: number): string {
  if (value === null) return "\\N";
  const text = textOf(value);
  const refused = typeof value === "string" ? text.includes("\0") || !text.isWellFormed() : REFUSED_ESCAPE.test(text);
  if (refused) throw new ColumnarFailure({ reason: "unrepresentable", column, line });
  return quoted(text);
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Digits) return value.text;
  return typeof value === "boolean" ? String(value) : jsonOf(value);
}

function jsonOf(value: unknown): string {
  if (value instanceof Digits) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, member]) => `${JSON.stringify(key)}:${jsonOf(member)}`)
    .join(",")}}`;
}

function typeOf(value: unknown): PostgresType | null {
  if (value === null) return null;
  if (typeof value === "string") return "text";
  if (typeof value === "boolean") return "boolean";
  return value instanceof Digits ? "numeric" : "jsonb";
}

/** The objects of the lines; empty lines are passed over. */
async function* jsonLines(file: string, limits: TableLimits): AsyncGenerator<{ members: Members; line: number }> {
  let line = 0;
  for await (const text of linesOf(file, limits.recordBytes)) {
    line++;
    if (text.trim() === "") continue;
    yield { members: membersOf(text, line), line };
  }
}

function membersOf(text: string, line: number): Members {
  let value: unknown;
  try {
    value = JSON.parse(text, keepDigits);
  } catch {
    throw new ColumnarFailure({ reason: "unreadable", line }); // the parser's own message quotes the line
  }
  if (value === null || typeof value !== "object" || Array.isArray(value) || value instanceof Digits)
    throw new ColumnarFailure({ reason: "unreadable", line });
  return value as Members;
}

function keepDigits(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? new Digits(context?.source ?? String(value)) : value;
}

/** Lines without their ends. A line is whole in memory, so it must not be longer than `maxBytes`. */
async function* linesOf(file: string, maxBytes: number): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let parts: Buffer[] = [];
  let bytes = 0;
  let line = 1;
  const add = (part: Buffer) => {
    bytes += part.length;
    if (bytes > maxBytes) throw new ColumnarFailure({ reason: "limit", limit: "recordBytes", line });
    parts.push(part);
  };
  const take = (): string => {
    const whole = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    parts = [];
    bytes = 0;
    try {
      return decoder.decode(whole);
    } catch {
      throw new ColumnarFailure({ reason: "unreadable", line }); // not UTF-8
    } finally {
      line++;
    }
  };
  for await (const chunk of createReadStream(file, { highWaterMark: 262_144 }) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, end));
      yield take();
      from = end + 1;
    }
    if (from < chunk.length) add(chunk.subarray(from));
  }
  if (bytes > 0) yield take();
}
