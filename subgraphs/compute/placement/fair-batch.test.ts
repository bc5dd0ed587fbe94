import { afterAll, beforeAll, expect, test } from "vitest";
import type { Tx } from "../../../infra/db/database.ts";
import { insertAccount, insertPlaced } from "../../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { computeEntities } from "../entities.ts";
import { type DueStage, takeFairBatch } from "./fair-batch.ts";

const NOW = new Date("2026-03-01T00:00:00Z");
const REQUEST = { limit: 8, afterTenant: "", dueBy: NOW, untriedSince: null, now: NOW };

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase([...computeEntities]);
  await insertAccount(database.db, NOW);
});
afterAll(() => database.close());

/** A transaction in which something else happens right after its first statement. */
function afterFirstStatement(tx: Tx, happens: () => Promise<unknown>): Tx {
  let first = true;
  return {
    ...tx,
    em: tx.em,
    sql: async <R>(text: string, values?: readonly unknown[]) => {
      const rows = await tx.sql<R>(text, values);
      if (first) await happens();
      first = false;
      return rows;
    },
  };
}

async function placingAgain() {
  const { db } = database;
  const placed = await insertPlaced(db, NOW);
  await db.sql("update compute.stage set status = 'placing' where id = $1", [placed.stageRunId]);
  return placed;
}

test("what a stage's generation has come to is read and locked once its stage is locked", async () => {
  const { db } = database;
  const { placementId, stageRunId } = await placingAgain();
  let seen: DueStage | undefined;
  let locked: unknown[] = [];
  await db.command(async (tx) => {
    const end = () => db.sql("update compute.placement set state = 'ended' where id = $1", [placementId]);
    seen = (await takeFairBatch(afterFirstStatement(tx, end), REQUEST)).find((s) => s.stageRunId === stageRunId);
    locked = await db.sql("select id from compute.placement where id = $1 for update skip locked", [placementId]);
  });
  expect(seen).toMatchObject({ generation: 1, placement: { id: placementId, state: "ended", attempts: 1 } });
  expect(locked).toEqual([]);
});

test("a stage that never had a generation has no placement", async () => {
  const { db } = database;
  const { stageRunId } = await placingAgain();
  await db.sql("delete from compute.placement where stage_run_id = $1", [stageRunId]);
  await db.sql("update compute.stage set generation = 0 where id = $1", [stageRunId]);
  const batch = await db.command((tx) => takeFairBatch(tx, REQUEST));
  expect(batch.find((s) => s.stageRunId === stageRunId)).toMatchObject({ generation: 0, placement: null });
});
