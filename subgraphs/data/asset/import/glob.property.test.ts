import fc from "fast-check";
import { expect, test } from "vitest";
import { globMatcher } from "./glob.ts";

/** The same pattern as a regular expression, which may take long but is somebody else's. */
function oracle(pattern: string): RegExp {
  const source = [...pattern].map((c) => (c === "*" ? ".*" : c === "?" ? "." : c.replace(/[.+^${}()|[\]\\]/g, "\\$&")));
  return new RegExp(`^${source.join("")}$`, "su");
}

const path = fc.string({ unit: fc.constantFrom("a", "b", "/", ".", "é", "𝄞"), maxLength: 12 });
const pattern = fc
  .string({ unit: fc.constantFrom("a", "b", "/", ".", "*", "?", "é"), maxLength: 8 })
  .filter((p) => !p.endsWith("/"));

test("a pattern fits what the regular expression of it fits", () => {
  fc.assert(
    fc.property(pattern, path, (p, text) => {
      expect(globMatcher(p)(text)).toBe(oracle(p).test(text));
    }),
    { numRuns: 3_000 },
  );
});

test.for<[pattern: string, path: string, fits: boolean]>([
  ["*.csv", "data/deep/train.csv", true],
  ["data/", "data/train.csv", true],
  ["data/", "database.csv", false],
  ["train-0000[0-3].parquet", "train-00002.parquet", true],
  ["train-0000[0-3].parquet", "train-00004.parquet", false],
  ["[!.]*", ".hidden", false],
  ["[!.]*", "shown", true],
  ["[]a]", "]", true],
  ["a[", "a[", true],
  ["**/x", "deep/er/x", true],
  ["README.md", "README.md", true],
  ["README.md", "docs/README.md", false],
  ["", "", true],
])("%s and %s: %s", ([pattern, text, fits]) => {
  expect(globMatcher(pattern)(text)).toBe(fits);
});

test("a pattern made to take for ever takes as many steps as any other", () => {
  const fits = globMatcher(`${"*a".repeat(500)}b`);
  expect(fits("a".repeat(1_000))).toBe(false);
});
