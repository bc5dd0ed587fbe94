import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { emptyDatabase } from "../../tests/support/database.ts";
import { query } from "../../tests/support/embedded-postgres.ts";
import { until } from "../../tests/support/until.ts";
import { DatabaseTooNew, type Migration, migrate, migrations } from "./migrate.ts";

async function database(): Promise<string> {
  const { url, close } = await emptyDatabase();
  onTestFinished(close);
  return url;
}

const FIRST: Migration = {
  name: "0001-first",
  sql: "create table public.first (n int); insert into public.first values (1)",
};
const SECOND: Migration = { name: "0002-second", sql: "alter table public.first add column note text" };

describe("migrations", () => {
  test("are applied once, in order, and only what is missing", async () => {
    const url = await database();
    expect(await migrate(url, [FIRST])).toEqual(["0001-first"]);
    expect(await migrate(url, [FIRST, SECOND])).toEqual(["0002-second"]);
    expect(await migrate(url, [FIRST, SECOND])).toEqual([]);
    expect(await query(url, "select n, note from public.first")).toEqual([{ n: 1, note: null }]);
  });

  test("of processes that start together are applied by one of them", async () => {
    const url = await database();
    const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(url, [FIRST, SECOND])));
    expect(applied.flat().sort()).toEqual(["0001-first", "0002-second"]);
    expect(await query(url, "select count(*)::int as n from public.first")).toEqual([{ n: 1 }]);
  });

  test("that fail half-way leave nothing of themselves, and can be tried again", async () => {
    const url = await database();
    const broken: Migration = { name: "0002-second", sql: `${SECOND.sql}; select no_such_function()` };
    await expect(migrate(url, [FIRST, broken])).rejects.toThrow(/migration 0002-second failed/);
    expect(await migrate(url, [FIRST, SECOND])).toEqual(["0002-second"]);
  });

  test("that wait for a table somebody holds keep nobody from it, and come once it is free", async () => {
    const url = await database();
    await migrate(url, [FIRST]);
    const holder = new pg.Client({ connectionString: url });
    await holder.connect();
    onTestFinished(() => holder.end());
    await holder.query("begin");
    await holder.query("select * from public.first");
    let isOver = false;
    const migrated = migrate(url, [FIRST, SECOND]).finally(() => {
      isOver = true;
    });
    const waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    await until("it waits", async () => (await query(url, waits)).length === 1);
    // Behind it in the queue for the table, and answered all the same.
    expect(await query(url, "select n from public.first")).toEqual([{ n: 1 }]);
    await until("it has let go", async () => (await query(url, waits)).length === 0);
    await until("it waits again", async () => (await query(url, waits)).length === 1);
    expect(isOver).toBe(false);
    await holder.query("commit");
    expect(await migrated).toEqual(["0002-second"]);
  }, 30_000);

  test("of a later release that only expand leave this one at work", async () => {
    const url = await database();
    await migrate(url, [FIRST, SECOND]);
    expect(await migrate(url, [FIRST])).toEqual([]);
    expect(await migrate(url, [FIRST, SECOND])).toEqual([]);
  });

  test("of a later release that take something away keep this one from writing", async () => {
    const url = await database();
    const contracting = {
      name: "0003-third",
      sql: "-- contracts: 0.2 reads no more\nalter table public.first drop note",
    };
    await migrate(url, [FIRST, SECOND, contracting]);
    await expect(migrate(url, [FIRST, SECOND])).rejects.toThrow(DatabaseTooNew);
    await expect(migrate(url, [FIRST, SECOND])).rejects.toThrow(/later release \(0003-third\)/);
    expect(await migrate(url, [FIRST, SECOND, contracting])).toEqual([]);
  });

  test("that an earlier release recorded with the others are not applied again", async () => {
    const url = await database();
    await migrate(url, [FIRST]);
    await query(url, `${SECOND.sql}; insert into infra.migration values ('0002-second', now())`);
    expect(await migrate(url, [FIRST, SECOND])).toEqual([]);
  });

  test("of this release have names that sort, and no statement that would drop a customer's data", () => {
    const names = migrations().map((m) => m.name);
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect(name).toMatch(/^\d{4}-[a-z0-9-]+$/);
    for (const { sql } of migrations()) expect(sql).not.toMatch(/\b(drop table|truncate)\b/i);
  });
});
