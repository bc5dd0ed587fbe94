import { open } from "node:fs/promises";
import { type LineEnd, scanCsv } from "./csv-scan.ts";
import type { Engine } from "./engine.ts";
import { RECORD_BYTES } from "./sql.ts";
import { ColumnarFailure, type TableColumn, type TableDescription, type TableLimits } from "./task.ts";

const BYTE_ORDER_MARK = "\u{feff}";

export interface CsvTable extends TableDescription {
  readonly lineEnd: LineEnd | null;
}

/** What a file of CSV with a header holds, without the engine. A line without anything is a row of one column only. */
export async function csvTable(engine: Engine, input: string, limits: TableLimits): Promise<CsvTable> {
  const columns = await csvColumns(engine, input, limits);
  const { records, lineEnd } = await scanCsv(engine.pathOf(input), {
    recordBytes: Math.min(limits.recordBytes, RECORD_BYTES),
    blankIsRecord: columns.length === 1,
  });
  return { columns, rows: records - 1, lineEnd };
}

/** Fails unless the engine read all the rows that there are. */
export function requireAllRows(rows: number, read: number): void {
  if (rows !== read) throw new ColumnarFailure({ reason: "unreadable" });
}

/** The columns that the header names, all of text. The engine would rename what is there twice, so it is read here. */
async function csvColumns(engine: Engine, input: string, limits: TableLimits): Promise<TableColumn[]> {
  const names = headerOf(await beginning(engine.pathOf(input), limits.recordBytes));
  if (!names) throw new ColumnarFailure({ reason: "unreadable", line: 1 });
  return names.map((name) => ({ name, type: "text" }));
}

async function beginning(file: string, bytes: number): Promise<string> {
  await using handle = await open(file);
  const buffer = Buffer.alloc(Math.min(bytes, (await handle.stat()).size));
  const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
  return buffer.toString("utf8", 0, bytesRead);
}

/** The fields of the first record; null where it is not CSV or has no fields. */
function headerOf(text: string): string[] | null {
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\n|\r|$)/y;
  field.lastIndex = text.startsWith(BYTE_ORDER_MARK) ? 1 : 0;
  const names: string[] = [];
  for (let found = field.exec(text); found; found = field.exec(text)) {
    names.push(found[1]?.replaceAll('""', '"') ?? found[2] ?? "");
    if (found[3] !== ",") return names.length === 1 && names[0] === "" ? null : names;
  }
  return null;
}
