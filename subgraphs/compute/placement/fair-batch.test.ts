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

/** As many stages of one workload each as the given one, all younger. */
async function copies({ stageRunId, workloadId }: { stageRunId: string; workloadId: string }, count: number) {
  await database.db.sql(
    `with workloads as (
       insert into compute.workload select (jsonb_populate_record(w, jsonb_build_object('id', 'wl_' || n))).*
       from compute.workload w, generate_series(1, $3::int) n where w.id = $2)
     insert into compute.stage select (jsonb_populate_record(s, jsonb_build_object('id', 'st_' || n,
       'workload_id', 'wl_' || n, 'created_at', s.created_at + interval '1 second' * n))).*
     from compute.stage s, generate_series(1, $3) n where s.id = $1`,
    [stageRunId, workloadId, count],
  );
  await database.db.sql("analyze compute.stage, compute.workload");
}

test("one of a team's many stages is taken without a look at the others", async () => {
  const { db } = database;
  await db.sql("truncate compute.stage, compute.workload, compute.placement");
  const oldest = await placingAgain();
  await copies(oldest, 1_000);
  const { taken, read } = await db.command(async (tx) => {
    const looked = async () => {
      const count = `select (sum(seq_tup_read) + sum(idx_tup_fetch))::bigint as n from pg_stat_xact_user_tables
        where relid in ('compute.stage'::regclass, 'compute.workload'::regclass)`;
      return (await tx.sql<{ n: bigint }>(count))[0]!.n;
    };
    const before = await looked();
    const batch = await takeFairBatch(tx, { ...REQUEST, limit: 1 });
    return { taken: batch.map((s) => s.stageRunId), read: (await looked()) - before };
  });
  expect(taken).toEqual([oldest.stageRunId]);
  expect(read).toBeLessThan(10n);
});
