import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson } from "./canonical-json.ts";

/** The same value with the members of every object in another order. */
function reordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reordered);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([k, v]) => [k, reordered(v)]),
  );
}

// JSON has one zero, and `__proto__` is a member like any other only when parsed.
const values = fc.json().map((text) => JSON.parse(text) as unknown);

test("the text means the value", () => {
  fc.assert(fc.property(values, (value) => void expect(JSON.parse(canonicalJson(value))).toEqual(value)));
});

test("the order of members does not matter", () => {
  fc.assert(fc.property(values, (value) => void expect(canonicalJson(reordered(value))).toBe(canonicalJson(value))));
});

test("different values have different texts", () => {
  fc.assert(
    fc.property(values, values, (a, b) => {
      fc.pre(JSON.stringify(reordered(a)) !== JSON.stringify(reordered(b)));
      const same = canonicalJson(a) === canonicalJson(b);
      if (same) expect(a).toEqual(b);
    }),
  );
});

test("members are sorted by UTF-16 code units, as RFC 8785 does in its own example", () => {
  const value = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 };
  expect(Object.values(JSON.parse(canonicalJson(value)) as object)).toHaveLength(7);
  expect(canonicalJson(value)).toBe('{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}');
});

test.each([
  [-0, "0"],
  [1e21, "1e+21"],
  [0.1, "0.1"],
  [{ a: undefined, b: null }, '{"b":null}'],
  [[undefined], "[null]"],
  [new Date("2026-01-01T00:00:00Z"), '"2026-01-01T00:00:00.000Z"'],
])("%j is %s", (value, text) => expect(canonicalJson(value)).toBe(text));

test.each([Number.NaN, Number.POSITIVE_INFINITY, 1n, undefined, () => 0, Symbol("s")])(
  "what JSON cannot say is refused: %s",
  (value) => expect(() => canonicalJson(value)).toThrow(TypeError),
);

test("a date that is none is refused", () => {
  expect(() => canonicalJson(new Date(Number.NaN))).toThrow(RangeError);
});
