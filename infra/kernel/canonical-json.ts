import { compareText } from "./compare-text.ts";

/**
 * One text for all JSON values that mean the same: object members sorted by UTF-16 code units (as RFC 8785 sorts them),
 * no white space, numbers as ECMAScript prints them. Members that are `undefined` are left out; `bigint` is refused.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new TypeError("JSON has no infinity and no NaN");
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) return `[${value.map((v) => canonicalJson(v === undefined ? null : v)).join(",")}]`;
  if (value instanceof Date) return JSON.stringify(value.toISOString());
  if (typeof value === "object") {
    const members = Object.entries(value as Record<string, unknown>).filter(([, v]) => v !== undefined);
    members.sort(([a], [b]) => compareText(a, b));
    return `{${members.map(([k, v]) => `${JSON.stringify(k)}:${canonicalJson(v)}`).join(",")}}`;
  }
  throw new TypeError(`JSON has no ${typeof value}`);
}
