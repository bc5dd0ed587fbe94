import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate, migrations } from "../infra/db/migrate.ts";
import { projectFile } from "../infra/telemetry/project-root.ts";
import { emptyDatabase } from "../tests/support/database.ts";
import { buildSubgraph, SUBGRAPH_NAMES } from "./graph.ts";
import { missingSql } from "./migrate.ts";
import { schemaFiles } from "./schema.ts";

let database: { url: string; close(): Promise<void> };

beforeAll(async () => {
  database = await emptyDatabase();
});
afterAll(() => database.close());

test("the checked-in schemas are what the code prints", () => {
  for (const [file, text] of schemaFiles()) expect(readFileSync(projectFile("schema", file), "utf8"), file).toBe(text);
});

test("a subgraph prints the same whichever others were built before it", () => {
  const print = (names: readonly string[]) => new Map(names.map((name) => [name, buildSubgraph(name).sdl]));
  const forwards = print(SUBGRAPH_NAMES);
  const backwards = print([...SUBGRAPH_NAMES].reverse());
  for (const name of SUBGRAPH_NAMES) expect(backwards.get(name), name).toBe(forwards.get(name));
});

test("the migrations make the tables that the entities describe, once", async () => {
  expect(await migrate(database.url)).toEqual(migrations().map((m) => m.name));
  expect(await migrate(database.url)).toEqual([]);
  expect(await missingSql(database.url)).toBe("");
});

test("a database of a later release is refused", async () => {
  await expect(migrate(database.url, [])).rejects.toThrow(/later release \(0001-initial/);
});

test("processes that migrate at once apply each migration once", async () => {
  const fresh = await emptyDatabase();
  try {
    const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(fresh.url)));
    expect(applied.flat()).toEqual(migrations().map((m) => m.name));
  } finally {
    await fresh.close();
  }
});
