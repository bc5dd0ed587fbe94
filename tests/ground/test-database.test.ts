import { expect, test } from "vitest";
import { computeEntities } from "../../subgraphs/compute/entities.ts";
import { testDatabase } from "../support/database.ts";

test("each test file's database has the tables and shares no row with another", async () => {
  const [a, b] = await Promise.all([testDatabase(computeEntities), testDatabase(computeEntities)]);
  try {
    await a.db.sql("create table mine ()");
    expect(await a.db.sql("select to_regclass('compute.workload') is not null as there")).toEqual([{ there: true }]);
    expect(await b.db.sql("select to_regclass('mine') as there")).toEqual([{ there: null }]);
  } finally {
    await a.close();
    await b.close();
  }
});
