import pg from "pg";
import { expect, test } from "vitest";
import { testDatabase } from "../../tests/support/database.ts";
import { Database } from "./database.ts";

test("connections lost in the middle of commands do not use up the pool", async () => {
  const database = await testDatabase([]);
  const db = await Database.open({ url: database.url, entities: [], poolSize: 2 });
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  for (let round = 0; round < 3; round++) {
    const lost = [1, 2].map(() =>
      db.command(async (tx) => {
        const [me] = await tx.sql<{ pid: number }>("select pg_backend_pid() as pid");
        await admin.query("select pg_terminate_backend($1)", [me?.pid]);
        await tx.sql("select 1");
      }),
    );
    const ends = await Promise.allSettled(lost);
    expect(ends.map((end) => end.status)).toEqual(["rejected", "rejected"]);
  }
  expect(await db.command((tx) => tx.sql("select 1 as one"))).toEqual([{ one: 1 }]);
  await db.close();
  await admin.end();
  await database.close();
}, 20_000);
