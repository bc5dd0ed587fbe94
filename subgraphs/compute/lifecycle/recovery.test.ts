import { expect, test } from "vitest";
import type { Placed } from "../../../tests/support/compute-fixtures.ts";
import { insertHosted, lifeOfEachTest } from "../../../tests/support/lifecycle-world.ts";
import { Stage } from "../stage/stage.entity.ts";
import { Workload } from "../workload/workload.entity.ts";
import { WorkloadEvent } from "../workload/workload-event.entity.ts";
import { stopAtDeadline } from "./deadline.commands.ts";
import { loseGeneration } from "./finish.commands.ts";

const deps = lifeOfEachTest();

async function running(over?: Parameters<typeof insertHosted>[1]): Promise<Placed> {
  const { placed, host } = await insertHosted(deps, over);
  await host.apply(host.running());
  return placed;
}

const lose = ({ placementId }: Placed) =>
  deps.db.command((tx) => loseGeneration(tx, { placementId, trigger: "host_lost", now: deps.clock.now() }));
const workload = async (placed: Placed) => (await deps.db.row(Workload, "where t.id = $1", [placed.workloadId]))!;
const stage = async (placed: Placed) => (await deps.db.row(Stage, "where t.id = $1", [placed.stageRunId]))!;
const events = async (placed: Placed) =>
  deps.db.rows(WorkloadEvent, "where t.workload_id = $1 order by t.seq", [placed.workloadId]);

test("a loss is recorded with its trigger, and so is the recovery that follows", async () => {
  const placed = await running();
  await lose(placed);
  const [interrupted, recovering] = (await events(placed)).slice(2);
  expect(interrupted).toMatchObject({
    type: "workload.interrupted",
    payload: { stage_id: "main", generation: 1, trigger: "host_lost", status: "running" },
  });
  expect(recovering).toMatchObject({
    type: "workload.recovering",
    payload: { from_generation: 1, next_generation: 2, attempt: 1, attempts_left: 9, status: "recovering" },
  });
});

test("a loss that two notice leaves the generation alone that came after it", async () => {
  const placed = await running({ spec: { resumeOnInterruption: true } });
  const holding = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  // The one that was faster: it has lost the first generation and begun the second before the other gets the lock.
  const faster = deps.db.command(async (tx) => {
    await tx.sql("select 1 from compute.workload where id = $1 for update", [placed.workloadId]);
    locked.resolve();
    await holding.promise;
    await loseGeneration(tx, { placementId: placed.placementId, trigger: "host_lost", now: deps.clock.now() });
    await tx.sql("update compute.stage set status = 'starting', generation = 2 where id = $1", [placed.stageRunId]);
  });
  await locked.promise;
  const slower = lose(placed);
  await expect.poll(waiting, { timeout: 5_000 }).toBe(1);
  holding.resolve();
  await Promise.all([faster, slower]);
  expect(await stage(placed)).toMatchObject({ status: "starting", generation: 2, recoveries: 1 });
});

/** Commands that wait for a row that another one holds. */
async function waiting(): Promise<number> {
  const rows = await deps.db.sql(
    "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return rows.length;
}

test("a machine lost before the command ran is no failure, even of work that is not to be resumed", async () => {
  const { placed } = await insertHosted(deps, { spec: { resumeOnInterruption: false } });
  await lose(placed);
  expect(await workload(placed)).toMatchObject({ status: "recovering" });
  expect(await stage(placed)).toMatchObject({ status: "placing", failedOfferIds: ["off_fixture"] });
});

test("a machine lost after the deadline has passed ends the work for its deadline", async () => {
  const completeBy = new Date(deps.clock.now().getTime() + 60_000);
  const placed = await running({ completeBy });
  await deps.clock.advance(60_000);
  await deps.db.command((tx) => stopAtDeadline(tx, placed.workloadId, deps.clock.now()));
  expect(await workload(placed)).toMatchObject({ status: "running" });
  await lose(placed);
  expect(await workload(placed)).toMatchObject({ status: "failed", reason: "deadline_exceeded" });
});

test("machines lost time and again end the work", async () => {
  const placed = await running();
  await deps.db.sql("update compute.stage set recoveries = 10 where id = $1", [placed.stageRunId]);
  await lose(placed);
  expect(await workload(placed)).toMatchObject({ status: "failed", reason: "recovery_exhausted" });
});
