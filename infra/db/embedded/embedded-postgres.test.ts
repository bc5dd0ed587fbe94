import pg from "pg";
import { expect, inject, test } from "vitest";

test("the run's server answers", async () => {
  const client = new pg.Client({ connectionString: inject("databaseUrl") });
  await client.connect();
  const { rows } = await client.query("select 1 + 1 as two, current_setting('fsync') as fsync");
  expect(rows).toEqual([{ two: 2, fsync: "off" }]);
  await client.end();
});
