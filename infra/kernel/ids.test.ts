import fc from "fast-check";
import { expect, test } from "vitest";
import { ID_PREFIX, type IdNoun, isId, newId } from "./ids.ts";

const nouns = Object.keys(ID_PREFIX) as IdNoun[];
const instants = fc.date({ min: new Date(0), max: new Date("2100-01-01"), noInvalidDate: true });

test("an id has its noun's prefix and then only hexadecimal digits", () => {
  fc.assert(
    fc.property(fc.constantFrom(...nouns), instants, (noun, now) => {
      const id = newId(noun, now);
      expect(id).toMatch(new RegExp(`^${ID_PREFIX[noun]}_[0-9a-f]{32}$`));
      expect(isId(noun, id)).toBe(true);
    }),
  );
});

test("ids sort by the time of their making", () => {
  fc.assert(
    fc.property(instants, instants, (a, b) => {
      fc.pre(a < b);
      expect(newId("workload", a) < newId("workload", b)).toBe(true);
    }),
  );
});

test("ten thousand ids of one millisecond are all different", () => {
  const now = new Date("2026-01-01T00:00:00Z");
  expect(new Set(Array.from({ length: 10_000 }, () => newId("event", now))).size).toBe(10_000);
});

test("the random digits of a thousand ids are all different", () => {
  const now = new Date("2026-01-01T00:00:00Z");
  expect(new Set(Array.from({ length: 1_000 }, () => newId("event", now).slice(-10))).size).toBe(1_000);
});

test("the same time and the same randomness make the same id", () => {
  const now = new Date("2026-01-01T00:00:00Z");
  const random = (size: number) => new Uint8Array(size).fill(5);
  expect(newId("workload", now, random)).toBe(newId("workload", now, random));
});

test("no two nouns share a prefix, so an id tells its noun", () => {
  expect(new Set(Object.values(ID_PREFIX)).size).toBe(nouns.length);
});

test.each(["", "wl", "wl_", "wl_a b", "wl_a/b", "wl_a\n", "wl_é", `wl_${"a".repeat(65)}`, "ws_0f", "WL_0f"])(
  "%j is no workload's id",
  (text) => expect(isId("workload", text)).toBe(false),
);
