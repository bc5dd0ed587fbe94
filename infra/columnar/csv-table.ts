import { open } from "node:fs/promises";
import type { Engine } from "./engine.ts";
import { ColumnarFailure, type TableColumn, type TableLimits } from "./task.ts";

const BYTE_ORDER_MARK = "\u{feff}";

/** The columns that the header names, all of text. The engine would rename what is there twice, so it is read here. */
export async function csvColumns(engine: Engine, input: string, limits: TableLimits): Promise<TableColumn[]> {
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
