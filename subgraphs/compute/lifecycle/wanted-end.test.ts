import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { IdempotencyKey } from "../../../infra/db/idempotency.ts";
import { OutboxRow } from "../../../infra/db/outbox.ts";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { MEMBER } from "../../../tests/support/actors.ts";
import { insertAccount, insertPlaced, type Placed } from "../../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { lifecycleDeps, MiniatureHost } from "../../../tests/support/miniature-host.ts";
import { computeEntities } from "../entities.ts";
import { Stage } from "../stage/stage.entity.ts";
import { cancelWorkload } from "../workload/cancel-workload.ts";
import { Workload } from "../workload/workload.entity.ts";
import { stopAtDeadline } from "./deadline.commands.ts";
import type { LifecycleDeps } from "./lifecycle-deps.ts";

let database: TestDatabase;
let clock: FakeClock;
let deps: LifecycleDeps;
let placed: Placed;
let host: MiniatureHost;

beforeAll(async () => {
  database = await testDatabase([...computeEntities, OutboxRow, IdempotencyKey]);
});
afterAll(() => database.close());
beforeEach(async () => {
  const { db } = database;
  await db.sql("truncate compute.account, compute.workload, compute.stage, compute.placement, compute.attempt");
  clock = new FakeClock("2026-03-01T00:00:00Z");
  deps = lifecycleDeps(db, clock);
  await insertAccount(db, clock.now());
  await db.sql("update compute.account set active_runs = 1");
  placed = await insertPlaced(db, clock.now(), { completeBy: new Date(clock.now().getTime() + 60_000) });
  await insertSecondStage();
  host = await MiniatureHost.open(deps, placed);
  await host.apply(host.running());
});

async function insertSecondStage(): Promise<void> {
  await database.db.sql(
    `insert into compute.stage (id, tenant_id, workload_id, stage_id, position, status, spec, continuity_mode, generation,
       fence, completed_units, total_units, next_try_at, failed_offer_ids, recoveries, created_at)
     select $1, tenant_id, workload_id, 'second', 1, 'pending', spec, continuity_mode, 0, 0, 0, 0, created_at, '{}', 0, created_at
     from compute.stage where id = $2`,
    [newId("stageRun", clock.now()), placed.stageRunId],
  );
}

const workload = () => deps.db.row(Workload, "where t.id = $1", [placed.workloadId]);
const stages = async () => (await deps.db.rows(Stage, "order by t.position")).map((stage) => stage.status);
const succeed = () => host.apply(host.exit(), host.end());

test("the next stage wants capacity once the one before it is completed", async () => {
  await succeed();
  expect(await stages()).toEqual(["completed", "placing"]);
  expect(await workload()).toMatchObject({ status: "running", terminalAt: null });
});

test("a stage that ends well while somebody asks for the end is the last one", async () => {
  await cancelWorkload(deps.db, MEMBER, placed.workloadId, clock.now());
  await succeed();
  expect(await stages()).toEqual(["completed", "cancelled"]);
  // The code of a command that was not the last one says nothing of the workload.
  expect(await workload()).toMatchObject({ status: "cancelled", reason: "cancelled", exitCode: null });
});

test("a stage that ends well when the deadline is over is the last one", async () => {
  clock.advance(60_000);
  await deps.db.command((tx) => stopAtDeadline(tx, placed.workloadId, clock.now()));
  await succeed();
  expect(await stages()).toEqual(["completed", "cancelled"]);
  expect(await workload()).toMatchObject({ status: "failed", reason: "deadline_exceeded", exitCode: null });
});
