import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Database } from "../../infra/db/database.ts";
import { OutboxRow } from "../../infra/db/outbox.ts";
import { isDatabaseUnavailable } from "../../infra/db/unavailable.ts";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { Chance } from "./chance.ts";
import { type DatabaseFault, Gate } from "./gate.ts";

let under: TestDatabase;
let gate: Gate;
let db: Database;
let fault: DatabaseFault | null;
let done: { name: string; outcome: string; wrote: readonly string[] }[];

beforeAll(async () => {
  under = await testDatabase([OutboxRow]);
});
afterAll(() => under?.close());

beforeEach(async () => {
  await under.db.sql("delete from infra.outbox");
  fault = null;
  done = [];
  gate = new Gate({ chance: new Chance(3), fault: () => fault, done: (operation) => void done.push(operation) });
  db = gate.database(under.db);
});

const INSERT = "insert into infra.outbox (id, job, payload, due_at, created_at) values ($1, 'j', '{}', $2, $2)";
const insert = (id: string) => db.sql(INSERT, [id, new Date(0)]);
const rows = () => under.db.rows(OutboxRow, "order by t.id");

/** Lets everybody through. */
async function passAll(): Promise<void> {
  while (!gate.idle) await gate.passOne();
}

test("nothing happens before it is let through, and then one operation at a time", async () => {
  const order: string[] = [];
  const both = ["a", "b"].map((name) =>
    db.command(async (tx) => {
      order.push(`${name} begins`);
      await tx.sql("select 1");
      order.push(`${name} ends`);
    }),
  );
  expect(order).toEqual([]);
  await passAll();
  await Promise.all(both);
  expect(order.slice(0, 2).map((text) => text[0])).toEqual([order[0]![0], order[0]![0]]);
  expect(order).toHaveLength(4);
});

test("chance decides who is next, the same way for the same seed", async () => {
  const orderOf = async (seed: number) => {
    const drawn: string[] = [];
    const other = new Gate({ chance: new Chance(seed), fault: () => null, done: () => {} });
    const through = other.database(under.db);
    const all = ["a", "b", "c", "d", "e"].map((name) => through.sql("select 1").then(() => drawn.push(name)));
    while (!other.idle) await other.passOne();
    await Promise.all(all);
    return drawn.join("");
  };
  expect(await orderOf(1)).toBe(await orderOf(1));
  expect(new Set([await orderOf(1), await orderOf(2), await orderOf(3), await orderOf(4)]).size).toBeGreaterThan(1);
});

test("a lost request changes nothing, a lost reply everything, and both look like a broken connection", async () => {
  for (const [kind, id] of [
    ["lost request", "1"],
    ["lost reply", "2"],
  ] as const) {
    fault = kind;
    const error = insert(id).catch((e: unknown) => e);
    await passAll();
    expect(isDatabaseUnavailable(await error)).toBe(true);
  }
  expect((await rows()).map((row) => row.id)).toEqual(["2"]);
});

test("it tells who wrote something from who only looked", async () => {
  const all = [
    insert("1"),
    db.sql("select 1"),
    db.sql("select id from infra.outbox where id = '1' for update"),
    db.sql("delete from infra.outbox where id = 'none' returning id"),
    db.command((tx) => tx.sql("update infra.outbox set job = 'k'")),
  ];
  for (const one of all) {
    await passAll();
    await one;
  }
  expect(done.map(({ wrote }) => wrote.length).toSorted()).toEqual([0, 0, 0, 1, 1]);
  expect(done.flatMap(({ wrote }) => wrote.map((text) => text.slice(0, 6))).toSorted()).toEqual(["insert", "update"]);
});

test("an operation that fails is told to whoever asked, and the next one gets through", async () => {
  const error = db.sql("select nonsense").catch((e: Error) => e.message);
  const fine = db.sql("select 1");
  await passAll();
  expect(await error).toContain("nonsense");
  expect(await fine).toHaveLength(1);
  expect(done.some(({ outcome }) => outcome.startsWith("failed"))).toBe(true);
});
