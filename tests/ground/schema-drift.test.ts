import { expect, test } from "vitest";
import { migrate } from "../../infra/db/migrate.ts";
import { missingSql } from "../../roles/migrate.ts";
import { emptyDatabase } from "../support/database.ts";

test("the migrations make every table, column and index that the entities describe", async () => {
  const { url, close } = await emptyDatabase();
  try {
    await migrate(url);
    expect(await missingSql(url)).toBe("");
  } finally {
    await close();
  }
});
