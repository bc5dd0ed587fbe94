import { afterEach, describe, expect, test } from "vitest";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { runMsFor } from "../../subgraphs/compute/ledger/price.ts";
import { Attempt, Placement } from "../../subgraphs/compute/placement/placement.entity.ts";
import { insertWorkload, TENANT } from "../../tests/support/compute-fixtures.ts";
import { CPU_KIND, H100_KIND } from "../../tests/support/market-kinds.ts";
import {
  eventOf,
  eventsOf,
  inUse,
  type MarketWorld,
  type MarketWorldOptions,
  marketWorld,
  NOTHING_IN_USE,
  settled,
  staying,
  until,
  workloadOf,
} from "../../tests/support/market-world.ts";

let world: MarketWorld;
afterEach(() => world.close());

test("a stage is placed, launched, run, released and settled, and each step is an event", async () => {
  world = await marketWorld();
  const { workloadId } = await world.submit();
  expect(await world.place()).toEqual({ looked: 1, placed: 1 });
  await until(world, settled(world, workloadId));
  expect((await eventsOf(world, workloadId)).map((e) => e.type)).toEqual([
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
  expect((await eventsOf(world, workloadId)).map((e) => e.seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(await inUse(world)).toEqual(NOTHING_IN_USE);
  const [attempt] = await world.db.rows(Attempt, "");
  expect(attempt).toMatchObject({ state: "gone", tenantId: TENANT, supplier: "simulated" });
});

test("events say what was considered, taken and stood in for, and never who supplies it", async () => {
  world = await marketWorld({ kinds: [CPU_KIND, { ...H100_KIND, tenantId: "team_other" }] });
  const { workloadId } = await world.submit({ spec: { vcpus: 2 } });
  await world.place();
  expect(await eventOf(world, workloadId, "workload.planning")).toMatchObject({
    candidates: 1,
    rejected: {},
    revision: 2,
  });
  expect(await eventOf(world, workloadId, "workload.reserving")).toMatchObject({
    sku: "sim-cpu",
    region: "sim-east",
    price_usd_hour: 0.1,
    hold_usd: 0.001834,
  });
  expect(await eventOf(world, workloadId, "workload.provisioning")).toMatchObject({
    compute_class: "vm",
    cpu_fallback: true,
    simulated: true,
    attempt: 1,
    generation: 1,
    boot_deadline: "2026-03-01T00:01:00.000Z",
  });
  const [placement] = await world.db.rows(Placement, "");
  expect(placement).toMatchObject({ cpuFallback: true, computeClass: "vm", vcpus: 2, memoryGb: 0.5, candidates: 1 });
  expect(JSON.stringify(await eventsOf(world, workloadId))).not.toMatch(/simulated"?[:/](?!true)|supplier/);
});

test("stages of one batch keep each its own candidates, rejections and events", async () => {
  // Time stands still, so none of these boots: their guests tell of nothing while the events are looked at.
  const slowly = { bootMs: 1_000 };
  world = await marketWorld({
    kinds: [
      { ...CPU_KIND, ...slowly },
      { ...H100_KIND, ...slowly },
    ],
  });
  const specs = [{ vcpus: 2 }, { gpu: "H100", gpuCount: 1 }, { vcpus: 2 }];
  const ids: string[] = [];
  for (const spec of specs) ids.push((await world.submit({ spec })).workloadId);
  expect(await world.place()).toEqual({ looked: 3, placed: 3 });
  const placements = await world.db.rows(Placement, "");
  for (const [i, workloadId] of ids.entries()) {
    const placement = placements.find((p) => p.workloadId === workloadId)!;
    const { rejected } = (await eventOf(world, workloadId, "workload.planning"))!;
    expect(placement.rejected.counts).toEqual(rejected);
    expect(placement).toMatchObject({ computeClass: specs[i]!.gpu ? "accelerator" : expect.any(String), attempts: 1 });
    expect((await eventsOf(world, workloadId)).map((e) => e.seq)).toEqual([1, 2, 3]);
  }
  const [cpu, gpu, like] = ids.map((id) => placements.find((p) => p.workloadId === id)!);
  expect(like!.rejected).toEqual(cpu!.rejected);
  expect(gpu!.rejected.examples).not.toEqual(cpu!.rejected.examples);
});

describe("a stage that gets nothing says why", () => {
  const cases: [string, MarketWorldOptions, Parameters<typeof insertWorkload>[2], string?][] = [
    ["no_matching_offer", {}, { spec: { gpu: "H100" } }],
    ["region_not_available", {}, { spec: { regions: ["mars"] } }],
    [
      "isolated_execution_unavailable",
      { kinds: [{ ...CPU_KIND, isolated: false }] },
      { spec: { needsIsolation: true } },
    ],
    ["no_capacity", { kinds: [H100_KIND] }, { spec: { gpu: "H100" } }, "update compute.capacity set gpus_used = gpus"],
    [
      "offers_quarantined",
      {},
      {},
      "update compute.offer set quarantined_until = '2026-03-01T00:10:00Z', failures_in_row = 1",
    ],
    ["supplier_silent", {}, {}, "update compute.supplier set seen_at = '2026-02-28T23:59:00Z'"],
    ["insufficient_credit", {}, {}, "update compute.account set balance_micros = 1833"],
    ["monthly_cap", {}, {}, "update compute.account set monthly_cap_micros = 1833"],
    ["payment_method_required", {}, {}, "update compute.account set payment_method = false"],
  ];
  test.each(cases)("%s", async (reason, options, over, sql) => {
    world = await marketWorld(options);
    if (sql) await world.db.sql(sql);
    const { workloadId, stageRunId } = await world.submit(over);
    expect(await world.place()).toEqual({ looked: 1, placed: 0 });
    const waiting = await workloadOf(world, workloadId);
    expect(waiting).toMatchObject({ status: "planning", waitingReason: reason, waitingSince: world.clock.now() });
    expect(await eventOf(world, workloadId, "workload.waiting")).toMatchObject({
      reason,
      since: "2026-03-01T00:00:00.000Z",
      next_try_at: "2026-03-01T00:00:01.000Z",
    });
    expect(await world.place()).toEqual({ looked: 0, placed: 0 });
    await world.clock.advance(1_000);
    await world.place();
    expect((await eventsOf(world, workloadId)).filter((e) => e.type === "workload.waiting")).toHaveLength(1);
    const [stage] = await world.db.sql<{ next: Date }>("select next_try_at as next from compute.stage where id = $1", [
      stageRunId,
    ]);
    expect(stage!.next > world.clock.now()).toBe(true);
    const { orders, held, own } = await inUse(world);
    expect({ orders, held, own }).toEqual({ orders: 0, held: 0, own: 0 });
  });
});

test("a stage that swings between two reasons tells each at most once a minute, and in the end the one that stays", async () => {
  world = await marketWorld();
  const { workloadId } = await world.submit();
  const since = world.clock.now();
  const told = async () =>
    (await eventsOf(world, workloadId)).filter((e) => e.type === "workload.waiting").map((e) => e.payload.reason);
  const tryWhile = async (reason: "insufficient_credit" | "supplier_silent") => {
    const seenAt = reason === "supplier_silent" ? new Date(0) : world.clock.now();
    await world.db.sql("update compute.supplier set seen_at = $1", [seenAt]);
    await world.db.sql("update compute.stage set next_try_at = $1", [world.clock.now()]);
    await world.place();
    expect(await workloadOf(world, workloadId)).toMatchObject({ waitingReason: reason, waitingSince: since });
    await world.clock.advance(1_000);
  };
  await world.db.sql("update compute.account set balance_micros = 0");
  for (let i = 0; i < 5; i++) {
    await tryWhile("insufficient_credit");
    await tryWhile("supplier_silent");
  }
  expect(await told()).toEqual(["insufficient_credit", "supplier_silent"]);
  await tryWhile("insufficient_credit");
  expect(await told()).toHaveLength(2);
  await world.clock.advance(LIMITS.waitingEventMs);
  await tryWhile("insufficient_credit");
  expect(await told()).toEqual(["insufficient_credit", "supplier_silent", "insufficient_credit"]);
});

test("the first window of the lowest rate is paid for, and its command runs that long", async () => {
  world = await marketWorld({
    kinds: [{ ...CPU_KIND, rateMicrosPerHour: 1n }],
    scripts: () => ({ steps: [{ waitMs: 50_000 }] }),
  });
  const { workloadId } = await world.submit();
  await world.place();
  const [placement] = await world.db.rows(Placement, "");
  expect(runMsFor(placement!, placement!.heldMicros)).toBeGreaterThanOrEqual(LIMITS.firstWindowMs);
  await until(world, settled(world, workloadId));
  expect(await workloadOf(world, workloadId)).toMatchObject({ status: "completed", spendMicros: 0n });
});

test("a workload whose own limit pays for no window of any offer ends instead of waiting for ever", async () => {
  world = await marketWorld();
  const { workloadId } = await world.submit({ maxCostMicros: 1_833n });
  await world.place();
  expect(await workloadOf(world, workloadId)).toMatchObject({ status: "failed", reason: "budget_exhausted" });
  const { workloadId: enough } = await world.submit({ maxCostMicros: 1_834n });
  await world.place();
  expect(await workloadOf(world, enough)).toMatchObject({ status: "provisioning", heldMicros: 1_834n });
});

test("freed capacity is given to the one that waited longest, before its next try is due", async () => {
  world = await marketWorld({
    kinds: [{ ...H100_KIND, machines: 1 }],
    scripts: () => ({ steps: [{ waitMs: 10_000 }] }),
  });
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    ids.push((await world.submit({ spec: { gpu: "H100" } })).workloadId);
    await world.place();
    await world.clock.advance(10);
  }
  expect((await workloadOf(world, ids[1]!)).waitingReason).toBe("no_capacity");
  await until(world, settled(world, ids[0]!), 100);
  await world.db.sql("update compute.stage set next_try_at = '2026-03-02T00:00:00Z' where status = 'placing'");
  await world.placer.placeBatch({ signal: staying, evenIfUntriedSince: world.clock.now() });
  expect(await workloadOf(world, ids[1]!)).toMatchObject({ status: "provisioning", waitingReason: null });
  expect(await workloadOf(world, ids[2]!)).toMatchObject({ status: "planning", waitingReason: "no_capacity" });
});
