import { expect, inject, onTestFinished, test } from "vitest";
import { Database, type Queryer } from "../db/database.ts";
import { BatchedReads, inOrder, ownedName, ownedValues } from "./batched-reads.ts";

const database = () => ({}) as Queryer;

/** Doubles numbers, and notes what it was asked for. */
function doubling() {
  const asked: (readonly number[])[] = [];
  const reads = new BatchedReads<number, number>(String, async (_q, wanted) => {
    asked.push(wanted);
    return wanted.map((n) => n * 2);
  });
  return { asked, reads };
}

test("what is asked for in one turn is read together, the same once, and everybody gets his own", async () => {
  const { asked, reads } = doubling();
  const q = database();
  expect(await Promise.all([1, 2, 1, 3, 2].map((n) => reads.read(q, n)))).toEqual([2, 4, 2, 6, 4]);
  expect(asked).toEqual([[1, 2, 3]]);
  expect(await reads.read(q, 1)).toBe(2);
  expect(asked).toEqual([[1, 2, 3], [1]]);
});

test("who asks while a read is under way gets one of his own", async () => {
  let value = "old";
  let finish = () => {};
  const begun = Promise.withResolvers<void>();
  const reads = new BatchedReads<string, string>(String, async () => {
    const seen = value;
    begun.resolve();
    if (seen === "old") await new Promise<void>((resolve) => (finish = resolve));
    return [seen];
  });
  const q = database();
  const early = reads.read(q, "x");
  await begun.promise;
  value = "new";
  expect(await reads.read(q, "x")).toBe("new");
  finish();
  expect(await early).toBe("old");
});

test("different databases are asked apart, many things by bounded statements, and a failure is told to all of its turn", async () => {
  const { asked, reads } = doubling();
  await Promise.all([reads.read(database(), 1), reads.read(database(), 1)]);
  expect(asked).toEqual([[1], [1]]);
  const q = database();
  const numbers = Array.from({ length: 1_200 }, (_, n) => n);
  expect(await Promise.all(numbers.map((n) => reads.read(q, n)))).toEqual(numbers.map((n) => n * 2));
  expect(asked.slice(2).map(({ length }) => length)).toEqual([500, 500, 200]);
  let fails = true;
  const failing = new BatchedReads<number, number>(String, async (_q, wanted) => {
    if (fails) throw new Error("lost");
    return [...wanted];
  });
  const outcomes = await Promise.allSettled([failing.read(q, 1), failing.read(q, 1), failing.read(q, 2)]);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  fails = false;
  expect(await failing.read(q, 1)).toBe(1);
});

test("what requests of several teams ask one database for in a turn is read together, and apart from another database", async () => {
  const { asked, reads } = doubling();
  const open = () => Database.open({ url: inject("databaseUrl"), entities: [] });
  const [one, other] = await Promise.all([open(), open()]);
  onTestFinished(async () => {
    await Promise.all([one.close(), other.close()]);
  });
  const through = [
    one,
    one.ofTeam("a"),
    one.ofTeam("a"),
    one.ofTeam("b"),
    one.ofTeam("a").ofTeam("c"),
    other.ofTeam("a"),
  ];
  expect(await Promise.all(through.map((db, n) => reads.read(db, n)))).toEqual([0, 2, 4, 6, 8, 10]);
  expect(asked).toEqual([[0, 1, 2, 3, 4], [5]]);
});

test("a row answers for its own team alone", () => {
  const wanted = [
    { tenantId: "a", id: "1" },
    { tenantId: "b", id: "1" },
    { tenantId: "a", id: "2" },
  ];
  const rows = [{ tenantId: "a", id: "1", name: "one" }];
  expect(inOrder(wanted, rows, (row) => row)).toEqual([rows[0], null, null]);
  expect(ownedValues(wanted)).toEqual([
    ["a", "b", "a"],
    ["1", "1", "2"],
  ]);
  expect(ownedName(wanted[0]!)).not.toBe(ownedName(wanted[1]!));
});
