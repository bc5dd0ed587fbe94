import { afterEach, expect, test } from "vitest";
import { Capacity } from "../../subgraphs/compute/offer/offer.entity.ts";
import { Attempt, Placement } from "../../subgraphs/compute/placement/placement.entity.ts";
import { Workload } from "../../subgraphs/compute/workload/workload.entity.ts";
import { WorkloadEvent } from "../../subgraphs/compute/workload/workload-event.entity.ts";
import { insertWorkload, TENANT } from "../../tests/support/compute-fixtures.ts";
import { type MarketWorld, type MarketWorldOptions, marketWorld, runDueJobs } from "../../tests/support/market-world.ts";

let world: MarketWorld;
async function open(options?: MarketWorldOptions): Promise<MarketWorld> {
  world = await marketWorld(options);
  return world;
}
afterEach(() => world.close());

async function eventTypes(workloadId: string): Promise<string[]> {
  const events = await world.db.rows(WorkloadEvent, "where t.workload_id = $1 order by t.seq", [workloadId]);
  return events.map((e) => e.type);
}

async function used(): Promise<Pick<Capacity, "cpuMillisUsed" | "memoryMbUsed" | "gpusUsed" | "slotsUsed">[]> {
  const capacities = await world.db.rows(Capacity, "order by t.id");
  return capacities.map(({ cpuMillisUsed, memoryMbUsed, gpusUsed, slotsUsed }) => ({
    cpuMillisUsed,
    memoryMbUsed,
    gpusUsed,
    slotsUsed,
  }));
}

const NOTHING = { cpuMillisUsed: 0, memoryMbUsed: 0, gpusUsed: 0, slotsUsed: 0 };

async function status(workloadId: string): Promise<string> {
  return (await world.db.row(Workload, "where t.id = $1", [workloadId]))!.status;
}

test("a stage is placed, launched, run, released and settled, and each step is an event", async () => {
  await open();
  const { workloadId } = await insertWorkload(world.db, world.clock.now());
  expect(await world.placer.placeBatch({ signal: new AbortController().signal })).toEqual({ looked: 1, placed: 1 });
  await expect.poll(() => status(workloadId)).toBe("completed");
  await runDueJobs(world);
  expect(await eventTypes(workloadId)).toEqual([
    "workload.planning",
    "workload.reserving",
    "workload.provisioning",
    "workload.running",
    "workload.stage_started",
    "workload.stage_completed",
    "workload.completed",
    "workload.resources_released",
    "workload.settled",
  ]);
  expect(await used()).toEqual([NOTHING]);
  expect(world.market.live).toEqual([]);
  const [attempt] = await world.db.rows(Attempt, "");
  expect(attempt).toMatchObject({ state: "gone", tenantId: TENANT, supplier: "simulated" });
  const [placement] = await world.db.rows(Placement, "");
  expect(placement).toMatchObject({ cpuFallback: true, computeClass: "vm", sku: "sim-cpu", generation: 1, attempts: 1 });
});
