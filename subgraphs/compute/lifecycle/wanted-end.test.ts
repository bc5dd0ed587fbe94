import { beforeEach, expect, test } from "vitest";
import { newId } from "../../../infra/kernel/ids.ts";
import { MEMBER } from "../../../tests/support/actors.ts";
import type { Placed } from "../../../tests/support/compute-fixtures.ts";
import { insertHosted, lifeOfEachTest } from "../../../tests/support/lifecycle-world.ts";
import type { MiniatureHost } from "../../../tests/support/miniature-host.ts";
import { Stage } from "../stage/stage.entity.ts";
import { cancelWorkload } from "../workload/cancel-workload.ts";
import { Workload } from "../workload/workload.entity.ts";
import { stopAtDeadline } from "./deadline.commands.ts";

const deps = lifeOfEachTest();
let placed: Placed;
let host: MiniatureHost;

beforeEach(async () => {
  await deps.db.sql("update compute.account set active_runs = 1");
  const completeBy = new Date(deps.clock.now().getTime() + 60_000);
  ({ placed, host } = await insertHosted(deps, { completeBy }));
  await insertSecondStage();
  await host.apply(host.running());
});

async function insertSecondStage(): Promise<void> {
  await deps.db.sql(
    `insert into compute.stage (id, tenant_id, workload_id, stage_id, position, status, spec, continuity_mode, generation,
       fence, completed_units, total_units, next_try_at, failed_offer_ids, recoveries, created_at)
     select $1, tenant_id, workload_id, 'second', 1, 'pending', spec, continuity_mode, 0, 0, 0, 0, created_at, '{}', 0, created_at
     from compute.stage where id = $2`,
    [newId("stageRun", deps.clock.now()), placed.stageRunId],
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
  await cancelWorkload(deps.db, MEMBER, placed.workloadId, deps.clock.now());
  await succeed();
  expect(await stages()).toEqual(["completed", "cancelled"]);
  // The code of a command that was not the last one says nothing of the workload.
  expect(await workload()).toMatchObject({ status: "cancelled", reason: "cancelled", exitCode: null });
});

test("a stage that ends well when the deadline is over is the last one", async () => {
  deps.clock.advance(60_000);
  await deps.db.command((tx) => stopAtDeadline(tx, placed.workloadId, deps.clock.now()));
  await succeed();
  expect(await stages()).toEqual(["completed", "cancelled"]);
  expect(await workload()).toMatchObject({ status: "failed", reason: "deadline_exceeded", exitCode: null });
});
