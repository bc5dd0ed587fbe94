import { afterEach, describe, expect, test } from "vitest";
import { RUNNER_PROTOCOL } from "../../infra/runner/protocol.ts";
import { loseGeneration } from "../../subgraphs/compute/lifecycle/finish.commands.ts";
import { orderToken } from "../../subgraphs/compute/placement/order-token.ts";
import { Attempt, Placement } from "../../subgraphs/compute/placement/placement.entity.ts";
import { Stage } from "../../subgraphs/compute/stage/stage.entity.ts";
import { CPU_KIND } from "../../tests/support/market-kinds.ts";
import {
  eventsOf,
  inUse,
  type MarketWorld,
  type MarketWorldOptions,
  marketWorld,
  NOTHING_IN_USE,
  settled,
  until,
  workloadOf,
} from "../../tests/support/market-world.ts";

let world: MarketWorld;
afterEach(() => world.close());

async function runningWorkload(options: MarketWorldOptions): Promise<string> {
  world = await marketWorld(options);
  const { workloadId } = await world.submit();
  await world.place();
  await until(world, async () => (await workloadOf(world, workloadId)).status === "running");
  return workloadId;
}

const seconds = (from: Date) => (world.clock.now().getTime() - from.getTime()) / 1000;

test("a machine that its supplier proves gone is lost well before the lease ends, and the next generation goes on", async () => {
  let runs = 0;
  const scripts = () => ({ steps: [{ waitMs: ++runs === 1 ? 3_000_000 : 10 }] });
  const workloadId = await runningWorkload({ scripts });
  const [first] = world.market.live;
  const goneAt = world.clock.now();
  world.market.end(first!.id);
  await until(world, async () => (await world.db.rows(Placement, "where t.outcome = 'lost'")).length === 1);
  expect(seconds(goneAt)).toBeLessThan(60);
  await until(world, settled(world, workloadId));
  const placements = await world.db.rows(Placement, "order by t.generation");
  expect(placements).toMatchObject([
    { generation: 1, outcome: "lost", interruptTrigger: "host_lost" },
    { generation: 2, outcome: "completed" },
  ]);
  expect(await inUse(world)).toEqual(NOTHING_IN_USE);
});

test("a wall clock that is set an hour back keeps no order from being looked at, nor from being released", async () => {
  await runningWorkload({ scripts: () => ({ steps: [{ waitMs: 3_000_000 }] }) });
  const [order] = world.market.live;
  const attempt = async () => (await world.db.row(Attempt, "where t.id = $1", [order!.id]))!;
  const soonAfterStep = async (done: () => Promise<boolean>) => {
    world.clock.stepWall(-3_600_000);
    const from = world.clock.now();
    await until(world, done);
    expect(seconds(from)).toBeLessThan(60);
  };
  world.market.end(order!.id);
  await soonAfterStep(async () => (await attempt()).goneSeenAt !== null);
  const { placementId } = await attempt();
  const now = world.clock.now();
  await world.db.command((tx) => loseGeneration(tx, { placementId, trigger: "host_lost", now }));
  await soonAfterStep(async () => (await attempt()).state === "gone");
});

test("a host whose files never come is given up although it beats, and another generation runs", async () => {
  world = await marketWorld({
    scripts: (spec) => ({ steps: [], stagingMs: spec.generation === 1 ? 3_000_000 : 0 }),
  });
  const { workloadId } = await world.submit();
  await world.place();
  await until(world, settled(world, workloadId), 4_000);
  expect(await world.db.rows(Placement, "order by t.generation")).toMatchObject([
    { generation: 1, outcome: "lost", interruptTrigger: "runner_lost", runningAt: null, chargedMicros: 0n },
    { generation: 2, outcome: "completed" },
  ]);
  expect(await inUse(world)).toEqual(NOTHING_IN_USE);
});

test("a reclaim that was announced is the reason given for the loss", async () => {
  let runs = 0;
  const workloadId = await runningWorkload({ scripts: () => ({ steps: [{ waitMs: ++runs === 1 ? 3_000_000 : 10 }] }) });
  const [first] = world.market.live;
  void world.market.reclaim(first!.id, 30_000);
  await until(world, settled(world, workloadId));
  const [lost] = await world.db.rows(Placement, "order by t.generation");
  expect(lost).toMatchObject({ outcome: "lost", interruptTrigger: "reclaim" });
});

test("a run whose last records are still under way when the machine is gone is completed, not lost", async () => {
  const workloadId = await runningWorkload({ scripts: () => ({ steps: [{ waitMs: 20_000 }, { log: "done\n" }] }) });
  await world.db.sql("update compute.attempt set next_check_at = $1", [world.clock.now()]);
  world.driver.observe = async () => ({ state: "gone" });
  await until(world, settled(world, workloadId));
  expect(await workloadOf(world, workloadId)).toMatchObject({ status: "completed" });
  expect((await eventsOf(world, workloadId)).map((e) => e.type)).not.toContain("workload.recovering");
});

test("a status call that is not answered now and then is no dead machine", async () => {
  const workloadId = await runningWorkload({ scripts: () => ({ steps: [{ waitMs: 1_800_000 }] }), seed: 7 });
  world.driver.misbehaviour.timeout = 0.3;
  await until(world, settled(world, workloadId), 4_000);
  expect(await workloadOf(world, workloadId)).toMatchObject({ status: "completed" });
  const [stage] = await world.db.rows(Stage, "");
  expect(stage).toMatchObject({ recoveries: 0, generation: 1 });
});

describe("the end of an attempt", () => {
  test("is asked for again and again, ever more rarely, while the supplier does not answer, and the row says so", async () => {
    const workloadId = await runningWorkload({ scripts: () => ({ steps: [{ waitMs: 30_000 }] }) });
    world.driver.terminate = async () => "unknown";
    const observe = world.driver.observe.bind(world.driver);
    await until(world, async () => (await workloadOf(world, workloadId)).status === "completed");
    const endedAt = world.clock.now();
    await until(world, () => seconds(endedAt) > 600, 2_000);
    const [attempt] = await world.db.rows(Attempt, "");
    expect(attempt).toMatchObject({ state: "ended", supplierSaid: "unknown", releasedAt: null });
    expect(attempt!.fruitlessChecks).toBeGreaterThan(4);
    expect(attempt!.fruitlessChecks).toBeLessThan(40);
    expect((await inUse(world)).slots).toBe(1);
    world.driver.terminate = async (id) => {
      world.market.end(id);
      return "gone";
    };
    world.driver.observe = observe;
    await until(world, settled(world, workloadId));
    expect(await inUse(world)).toEqual(NOTHING_IN_USE);
  });

  test("is not believed while the supplier still shows the order", async () => {
    const workloadId = await runningWorkload({ scripts: () => ({ steps: [{ die: true }] }) });
    const [order] = world.market.live;
    const terminate = world.driver.terminate.bind(world.driver);
    world.driver.terminate = async () => "gone";
    const [placement] = await world.db.rows(Placement, "");
    await world.db.sql("update compute.stage set spec = jsonb_set(spec, '{resumeOnInterruption}', 'false')");
    await world.db.command((tx) =>
      loseGeneration(tx, { placementId: placement!.id, trigger: "host_lost", now: world.clock.now() }),
    );
    const askedAt = world.clock.now();
    await until(world, () => seconds(askedAt) > 20);
    expect(await world.db.rows(Attempt, "")).toMatchObject([
      { id: order!.id, state: "ended", supplierSaid: "said gone, yet it is running" },
    ]);
    world.driver.terminate = terminate;
    await until(world, settled(world, workloadId));
    expect(await inUse(world)).toEqual(NOTHING_IN_USE);
  });
});

test("an order that a machine took and forgot before it connected is launched again at once, held against nobody", async () => {
  world = await marketWorld({ kinds: [{ ...CPU_KIND, bootMs: 5_000 }] });
  const { workloadId } = await world.submit();
  await world.place();
  const [attempt] = await world.db.rows(Attempt, "where t.state = 'booting'");
  const forgottenAt = world.clock.now();
  world.market.forget(attempt!.id);
  await until(world, settled(world, workloadId));
  expect(seconds(forgottenAt)).toBeLessThan(30); // the boot deadline is later
  expect(await world.db.rows(Placement, "")).toMatchObject([{ generation: 1, outcome: "completed" }]);
  expect(await world.db.rows(Attempt, "")).toMatchObject([{ id: attempt!.id, failureCode: null }]);
  expect(await inUse(world)).toEqual(NOTHING_IN_USE);
});

test("an order whose host died right after it connected, with nothing written down, goes on in a new session", async () => {
  world = await marketWorld({ kinds: [{ ...CPU_KIND, bootMs: 5_000 }] });
  const { workloadId } = await world.submit();
  await world.place();
  const [{ id: orderId }] = (await world.db.rows(Attempt, "where t.state = 'booting'")) as [Attempt];
  const host = world.intake.connect(
    () => {}, // dead by now
    () => {},
  );
  await host.receive({
    type: "open",
    orderId,
    token: orderToken(world.deps.runnerKey, orderId),
    protocol: RUNNER_PROTOCOL,
  });
  host.closed();
  expect(await world.db.rows(Attempt, "where t.session_hash is not null")).toHaveLength(1);
  const forgottenAt = world.clock.now();
  world.market.forget(orderId);
  await until(world, settled(world, workloadId));
  expect(seconds(forgottenAt)).toBeLessThan(30); // the lease ends later
  expect(await world.db.rows(Placement, "")).toMatchObject([{ generation: 1, outcome: "completed" }]);
  expect(await inUse(world)).toEqual(NOTHING_IN_USE);
});
