import fc from "fast-check";
import { expect, test } from "vitest";
import type { TableColumn } from "../../../../infra/columnar/task.ts";
import type { LoadFailure } from "../load-failure.ts";
import { fits, targetColumns } from "./target-columns.ts";

const named = (...names: string[]): TableColumn[] => names.map((name) => ({ name, type: "text" }));

function refusal(columns: TableColumn[]): string {
  try {
    targetColumns(columns);
    return "none";
  } catch (error) {
    return (error as LoadFailure).word;
  }
}

test("names are taken in lower case, and the type as it is", () => {
  expect(targetColumns([{ name: "Größe IN m", type: "real", empty: true }])).toEqual([
    { name: "größe in m", type: "real", empty: true },
  ]);
});

test("names that a table cannot have, or not twice, or that are the platform's own are refused", () => {
  for (const names of [["Id", "iD"], ["nodus_stage"], ["NODUS_anything"], ["é".repeat(32)], ["x".repeat(64)], ["a\0"]])
    expect([names, refusal(named(...names))]).toEqual([names, "unsupported_file"]);
  expect(refusal(named("é".repeat(31), "x".repeat(63), "nodus", "a b"))).toBe("none");
});

test("any names come out as distinct lower-case names, or are refused", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1, maxLength: 20 })), (names) => {
      if (refusal(named(...names)) !== "none") return;
      const folded = targetColumns(named(...names)).map(({ name }) => name);
      expect(folded).toEqual(names.map((name) => name.toLowerCase()));
      expect(new Set(folded).size).toBe(names.length);
    }),
  );
});

test("a column goes where every value of it can be kept, or is refused for the value that cannot", () => {
  const column = (type: TableColumn["type"], empty = false) => ({ name: "a", type, empty });
  expect(fits(column("text"), "character varying", true)).toBe(true);
  expect(fits(column("text"), "integer", false)).toBe(false);
  expect(fits(column("integer"), "bigint", false)).toBe(true);
  expect(fits(column("bigint"), "integer", false)).toBe(false);
  expect(fits(column("bigint"), "double precision", false)).toBe(false);
  expect(fits(column("numeric"), "double precision", false)).toBe(true);
  expect(fits(column("numeric"), "numeric", true)).toBe(false);
  expect(fits(column("timestamptz"), "timestamp without time zone", false)).toBe(false);
  expect(fits(column("timestamp"), "timestamp without time zone", true)).toBe(false);
  expect(fits(column("jsonb"), "json", false)).toBe(true);
  expect(fits(column("text", true), "integer", false)).toBe(true);
});
