import { expect, test } from "vitest";
import { finishWorkload } from "../../subgraphs/compute/lifecycle/finish.commands.ts";
import { Attempt } from "../../subgraphs/compute/placement/placement.entity.ts";
import {
  type JobTrial,
  jobContext,
  survivesBeingRunTwice,
  survivesDyingAtEveryStep,
} from "../../tests/support/jobs.ts";
import { CPU_KIND, H100_KIND } from "../../tests/support/market-kinds.ts";
import {
  inUse,
  type MarketWorld,
  marketWorld,
  NOTHING_IN_USE,
  reconcileOnce,
  until,
  workerDeps,
} from "../../tests/support/market-world.ts";
import type { ComputeWorkerDeps } from "./compute-workers.ts";
import { createPlacer, placeStageJob } from "./place-stage.ts";
import { releaseAttemptJob } from "./release-attempt.ts";
import { superviseBootJob } from "./supervise-boot.ts";

const TIMEOUT_MS = 120_000;
interface Trial extends MarketWorld {
  stageRunId: string;
  workloadId: string;
  orderId: string;
}

/** A process of its own on the world's database and driver, which may be about to die. */
function process(world: Trial): ComputeWorkerDeps {
  const { db, clock } = world;
  const { settings, wakeups } = world.deps;
  return workerDeps({ db, clock, settings, wakeups }, world.ports.driver);
}

async function started(options: Parameters<typeof marketWorld>[0]): Promise<Trial> {
  const world = await marketWorld(options);
  const ids = await world.submit();
  return Object.assign(world, ids, { orderId: "" });
}

async function ordered(options: Parameters<typeof marketWorld>[0]): Promise<Trial> {
  const world = await started(options);
  await world.place();
  const [attempt] = await world.db.rows(Attempt, "");
  await world.db.sql("delete from infra.outbox");
  return Object.assign(world, { orderId: attempt!.id });
}

const teardown = (world: Trial) => world.close();

test("placing a stage orders once, whatever happens to it", { timeout: TIMEOUT_MS }, async () => {
  const trial: JobTrial<Trial> = {
    setup: () => started({ kinds: [{ ...CPU_KIND, bootMs: 3_000_000 }] }),
    run: (world) => {
      const deps = process(world);
      return placeStageJob(deps, createPlacer(deps)).body({ stageRunId: world.stageRunId }, jobContext(world));
    },
    reconcile: (world) => until(world, () => world.market.live.length > 0),
    assert: async (world) => {
      const attempts = await world.db.rows(Attempt, "");
      expect(attempts).toHaveLength(1);
      expect([...world.market.orders.keys()]).toEqual([attempts[0]!.id]);
      expect(await inUse(world)).toEqual({
        cpu: 100,
        memory: 512,
        gpus: 0,
        slots: 1,
        held: 1_834,
        own: 1_834,
        orders: 1,
      });
    },
    teardown,
  };
  await survivesBeingRunTwice(trial);
  expect(await survivesDyingAtEveryStep(trial)).toContain("driver.launch, answered");
});

test("a boot that timed out is given up once, whatever happens to the job", { timeout: TIMEOUT_MS }, async () => {
  const trial: JobTrial<Trial> = {
    setup: async () => {
      const world = await ordered({
        kinds: [CPU_KIND, { ...H100_KIND, tenantId: "team_other" }],
        misbehaviour: { mute: 1 },
      });
      await world.clock.advance(60_000);
      return world;
    },
    run: (world) => superviseBootJob(process(world)).body({ orderId: world.orderId }, jobContext(world)),
    reconcile: reconcileOnce,
    assert: async (world) => {
      const [attempt, ...others] = await world.db.rows(Attempt, "");
      expect(others).toEqual([]);
      expect(attempt).toMatchObject({ state: "gone", failureCode: "boot_timeout" });
      const [offer] = await world.db.sql("select failures_in_row from compute.offer where sku = 'sim-cpu'");
      expect(offer).toEqual({ failures_in_row: 1 });
      const [stage] = await world.db.sql("select status, failed_offer_ids from compute.stage");
      expect(stage).toEqual({ status: "placing", failed_offer_ids: [attempt!.offerId] });
      expect(await inUse(world)).toEqual(NOTHING_IN_USE);
    },
    teardown,
  };
  await survivesBeingRunTwice(trial);
  await survivesDyingAtEveryStep(trial);
});

test("an attempt's capacity is given back once, whatever happens to its release", { timeout: TIMEOUT_MS }, async () => {
  const trial: JobTrial<Trial> = {
    setup: async () => {
      const world = await ordered({ kinds: [{ ...CPU_KIND, bootMs: 3_000_000 }] });
      const now = world.clock.now();
      const end = {
        workloadId: world.workloadId,
        event: "cancel",
        reason: "cancelled",
        message: "Cancelled.",
        now,
      } as const;
      await world.db.command((tx) => finishWorkload(tx, end));
      return world;
    },
    run: (world) => releaseAttemptJob(process(world)).body({ orderId: world.orderId }, jobContext(world)),
    reconcile: async (world) => {
      await world.clock.advance(10_000);
      await reconcileOnce(world);
    },
    assert: async (world) => {
      expect(await world.db.rows(Attempt, "")).toMatchObject([{ state: "gone" }]);
      const released = await world.db.sql(
        "select 1 from compute.workload_event where type = 'workload.resources_released'",
      );
      expect(released).toHaveLength(1);
      expect(await inUse(world)).toEqual(NOTHING_IN_USE);
    },
    teardown,
  };
  await survivesBeingRunTwice(trial);
  const steps = await survivesDyingAtEveryStep(trial);
  expect(steps).toContain("driver.terminate, answered");
});
