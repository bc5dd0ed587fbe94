import { afterEach, expect, test } from "vitest";
import { OutboxRow } from "../../infra/db/outbox.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { computeEntities } from "../../subgraphs/compute/entities.ts";
import { FARTHEST_TRY_MS } from "../../subgraphs/compute/placement/waiting.ts";
import { insertAccount, insertWorkload } from "../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { recallFarTries } from "./waiting-stages.ts";

let database: TestDatabase;
afterEach(() => database.close());

async function stageToTryAt(at: Date, now: Date): Promise<string> {
  const { workloadId } = await insertWorkload(database.db, now);
  await database.db.sql("update compute.stage set status = 'placing', next_try_at = $2 where workload_id = $1", [
    workloadId,
    at,
  ]);
  return workloadId;
}

test("a stage that was due before the wall clock was set back is due at once, and one that waits its time is not", async () => {
  database = await testDatabase([...computeEntities, OutboxRow]);
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  await insertAccount(database.db, clock.now());
  const late = await stageToTryAt(clock.now(), clock.now());
  clock.stepWall(-3_600_000);
  const now = clock.now();
  const waits = await stageToTryAt(new Date(now.getTime() + FARTHEST_TRY_MS), now);
  expect(await recallFarTries(database.db, now)).toBe(1);
  expect(await recallFarTries(database.db, now)).toBe(0);
  const due = await database.db.sql<{ workload_id: string }>(
    "select workload_id from compute.stage where status = 'placing' and next_try_at <= $1",
    [now],
  );
  expect(due.map((row) => row.workload_id)).toEqual([late]);
  expect(waits).not.toBe(late);
});
