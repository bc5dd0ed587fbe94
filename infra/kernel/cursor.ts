import { COMMON, Refused } from "./refusal.ts";

/** The values of a row's sort key, most significant first. */
export type Keyset = readonly (string | number)[];

/** Numbers of a keyset are counts or instants in milliseconds: none is below zero or beyond the last date. */
const HIGHEST_NUMBER = 8.64e15;

/** An opaque cursor for a keyset. `list` names the list, so that a cursor of one list is refused by another. */
export function encodeCursor(list: string, keyset: Keyset): string {
  return Buffer.from(JSON.stringify([list, ...keyset])).toString("base64url");
}

/** The keyset of a cursor that `encodeCursor` made for the same list; refused as `invalid_cursor` otherwise. */
export function decodeCursor(list: string, cursor: string, length: number): (string | number)[] {
  const values = parse(cursor);
  const fits = Array.isArray(values) && values.length === length + 1 && values[0] === list && values.every(isKey);
  if (!fits) throw new Refused(COMMON.invalid_cursor, { field: "/after" });
  return values.slice(1) as (string | number)[];
}

function isKey(value: unknown): boolean {
  if (typeof value === "string") return !value.includes("\0");
  return typeof value === "number" && value >= 0 && value <= HIGHEST_NUMBER;
}

function parse(cursor: string): unknown {
  if (cursor.length > 1024 || !/^[A-Za-z0-9_-]+$/.test(cursor)) return null;
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch {
    return null; // not ours: the caller refuses it by name
  }
}
