import path from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { fromUsdNumber } from "../../../../infra/kernel/micros.ts";
import { egressHost } from "./egress-host.ts";
import { GPU_FAMILIES, gpuFamily } from "./gpu-families.ts";
import { isPortableName } from "./names.ts";
import { checkOutcome, instant } from "./outcome.ts";
import { checkpointPathFault, pathFault } from "./paths.ts";

const part = fc.stringMatching(/^[A-Za-z0-9_ -]{1,12}$/);

test("a path of ordinary parts is accepted, and stays below its start", () => {
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), (parts) => {
      const given = parts.join("/");
      expect(pathFault(given)).toBeNull();
      expect(checkpointPathFault(given)).toBeNull();
    }),
  );
});

test("whatever a path is, one that is accepted is normal, relative and below its start on every system", () => {
  const texts = fc.oneof(fc.string({ unit: "binary", maxLength: 24 }), fc.stringMatching(/^[./\\:a]{0,12}$/));
  fc.assert(
    fc.property(texts, (text) => {
      if (pathFault(text) !== null) return;
      expect(path.posix.normalize(text)).toBe(text);
      expect(path.posix.join("/base", text).startsWith("/base/")).toBe(true);
      expect(path.win32.join("C:\\base", text).startsWith("C:\\base\\")).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

test.each([
  ["a//b"],
  ["a/../b"],
  ["./a"],
  ["a/"],
  ["a\\b"],
  ["c:a"],
  ["a\u0000"],
  ["a\u0085b"],
  ["x".repeat(513)],
  ["\ud800"],
])("the path %j is refused", (text) => expect(pathFault(text)).not.toBeNull());

test("a portable name is one path part that every file system keeps as it is", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 12 }), fc.stringMatching(/^[A-Za-z0-9._-]{0,10}$/)), (name) => {
      if (!isPortableName(name)) return;
      expect(path.win32.basename(name)).toBe(name);
      expect(name).not.toMatch(/[. ]$|^\.\.?$|[\\/:*?"<>|\p{Cc}]/u);
      expect(name).not.toMatch(/^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i);
    }),
    { numRuns: 2000 },
  );
});

test("a GPU family is known in any case, with any separators and the maker's name", () => {
  const separator = fc.constantFrom("", " ", "-", "_", "  ");
  fc.assert(
    fc.property(
      fc.constantFrom(...GPU_FAMILIES),
      separator,
      fc.boolean(),
      fc.boolean(),
      (family, sep, upper, maker) => {
        const spelled = `${maker ? `NVIDIA${sep}` : ""}${family.replaceAll(" ", sep)}`;
        expect(gpuFamily(upper ? spelled.toUpperCase() : spelled.toLowerCase())).toBe(family);
      },
    ),
  );
  expect(gpuFamily("a6000")).toBe("RTX A6000");
  for (const unknown of ["", "NVIDIA", "H100X", "GTX 1080", "A 1", "H100 80GB"]) expect(gpuFamily(unknown)).toBeNull();
});

test("only exact host names are egress hosts, and each has one spelling", () => {
  for (const no of [
    "https://a.example",
    "a.example:443",
    "a.example/x",
    "*.example",
    "127.0.0.1",
    "0x7f.1",
    "2130706433",
    "::1",
    "[::1]",
    "localhost",
    "a..example",
    "-a.example",
    "a.example.",
    "a b.example",
    "user@a.example",
    "",
  ])
    expect([no, egressHost(no)]).toEqual([no, null]);
  expect(egressHost("EXAMPLE.com")).toBe("example.com");
  fc.assert(
    fc.property(fc.domain(), (host) => {
      const once = egressHost(host);
      expect(once).not.toBeNull();
      expect(egressHost(once!)).toBe(once);
    }),
  );
});

test("a spending limit is cut to micros and never raised", () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-7, max: 9e9, noNaN: true }), (usd) => {
      const exact = fromUsdNumber(usd)!;
      if (exact === 0n) {
        expect(() => checkOutcome({ max_cost_usd: usd }, new Date(0))).toThrow();
        return;
      }
      const { maxCostMicros, payload } = checkOutcome({ max_cost_usd: usd }, new Date(0));
      expect(maxCostMicros).toBe(exact);
      expect(payload.max_cost_usd!).toBeLessThanOrEqual(usd);
      expect(checkOutcome({ max_cost_usd: payload.max_cost_usd! }, new Date(0)).maxCostMicros).toBe(maxCostMicros);
    }),
    { numRuns: 2000 },
  );
});

test("an RFC 3339 time means the same instant as it was written from", () => {
  fc.assert(
    fc.property(fc.date({ min: new Date(0), max: new Date("9999-01-01"), noInvalidDate: true }), (date) => {
      expect(instant(date.toISOString())).toEqual(date);
    }),
  );
  expect(instant("2026-03-01T01:00:00+01:00")).toEqual(new Date("2026-03-01T00:00:00Z"));
  for (const no of [
    "2026-13-01T00:00:00Z",
    "2026-02-29T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01",
    "now",
    "2026-01-01T00:00:00+25:00",
  ])
    expect([no, instant(no)]).toEqual([no, null]);
});
