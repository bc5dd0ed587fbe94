import fc from "fast-check";
import { expect, test } from "vitest";
import { leaksIn } from "./leaks.ts";

const text = fc.string({ unit: "grapheme", maxLength: 40 });
const value = fc.string({ unit: "grapheme", minLength: 12, maxLength: 40 });
const WAYS: ((text: string) => string)[] = [
  (t) => t,
  (t) => JSON.stringify(t),
  encodeURIComponent,
  (t) => Buffer.from(t).toString("hex"),
  (t) => Buffer.from(t).toString("base64"),
  (t) => Buffer.from(t).toString("base64url"),
];

test("a value is found in the middle of any text, in every disguise", () => {
  fc.assert(
    fc.property(text, value, text, fc.constantFrom(...WAYS), (before, secret, after, way) => {
      fc.pre([before, secret, after].every((t) => t.isWellFormed()));
      expect(leaksIn(Buffer.from(way(before + secret + after)), { secret })).toEqual(["secret"]);
    }),
  );
});

test("a text without the value has none", () => {
  expect(leaksIn(Buffer.from("nothing to see here, c2VjcmV0 neither"), { secret: "a-secret-value" })).toEqual([]);
});
