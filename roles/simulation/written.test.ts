import { expect, test } from "vitest";
import { addWritten, ROWS_WENT, type Written, wrote } from "./written.ts";

function writtenBy(...texts: string[]): Record<string, string[] | string | null> {
  const written: Written = new Map();
  for (const text of texts) addWritten(written, text);
  return Object.fromEntries(
    [...written].map(([table, columns]) => [table, columns instanceof Set ? [...columns].toSorted() : columns]),
  );
}

test("an update names its columns, wherever commas and keywords stand in its expressions", () => {
  const text = `update compute.stage s set next_try_at = v.at, state = case when a = ', b = c' then f(x, (select 1
    from y where z)) else 'from' end, seq = seq + 1 from (values ($1, $2)) v where s.id = v.id returning s.seq`;
  expect(writtenBy(text)).toEqual({ "compute.stage": ["next_try_at", "seq", "state"] });
  expect(writtenBy("with w as (update compute.workload set event_seq = event_seq + 1 where id = $1) select 1")).toEqual(
    {
      "compute.workload": ["event_seq"],
    },
  );
});

test("rows that come or go may change every column, and so may an assignment that cannot be told apart", () => {
  expect(writtenBy("insert into a.b (c) values (1) on conflict (c) do update set c = 2")).toEqual({ "a.b": null });
  expect(writtenBy("delete from a.b where c = 1")).toEqual({ "a.b": ROWS_WENT });
  expect(writtenBy("update a.b set (c, d) = (select 1, 2)")).toEqual({ "a.b": null });
});

test("several statements add up, table by table", () => {
  expect(writtenBy("update a.b set c = 1", "update a.b as t set d = 1", "update a.e set f = 1")).toEqual({
    "a.b": ["c", "d"],
    "a.e": ["f"],
  });
  expect(writtenBy("delete from a.b", "update a.b set c = 1")).toEqual({ "a.b": null });
  expect(writtenBy("update a.b set c = 1", "delete from a.b")).toEqual({ "a.b": null });
  expect(writtenBy("insert into a.b (c) values (1)", "delete from a.b")).toEqual({ "a.b": null });
  expect(writtenBy("delete from a.b", "delete from a.b where c = 1")).toEqual({ "a.b": ROWS_WENT });
});

test("what only looks or locks wrote nothing, and what returns its changes wrote as many as it returns", () => {
  expect(wrote("select 1 from a.b for update of b skip locked", [{}])).toBe(false);
  expect(wrote("select 1 from a.b for no key update", [{}])).toBe(false);
  expect(wrote("update a.b set c = 1 returning c", [])).toBe(false);
  expect(wrote("update a.b set c = 1 returning c", [{}])).toBe(true);
  expect(wrote("update a.b set c = 1", [])).toBe(true);
  expect(wrote("with x as (update a.b set c = 1 returning c) select c from x where false", [])).toBe(true);
});

test("a change that does not say of which table is an error, for nobody would look at it", () => {
  expect(() => wrote("update b set c = 1", [])).toThrow("what does this change? update b");
});
