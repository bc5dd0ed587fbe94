import { afterEach, describe, expect, test } from "vitest";
import { Offer } from "../../subgraphs/compute/offer/offer.entity.ts";
import { Attempt, Placement } from "../../subgraphs/compute/placement/placement.entity.ts";
import { H100_KIND } from "../../tests/support/market-kinds.ts";
import {
  eventOf,
  inUse,
  type MarketWorld,
  marketWorld,
  NOTHING_IN_USE,
  settled,
  staying,
  until,
  withCalls,
  workerDeps,
  workloadOf,
} from "../../tests/support/market-world.ts";
import { createPlacer } from "./place-stage.ts";

let world: MarketWorld;
afterEach(() => world.close());

describe("no boot, next offer", () => {
  const cheap = { ...H100_KIND, sku: "sim-h100-cheap", rateMicrosPerHour: 1_000_000n };
  const dear = { ...H100_KIND, sku: "sim-h100-dear", rateMicrosPerHour: 3_000_000n };
  const gpu = { spec: { gpu: "H100" } };

  test("a refused order goes to the next offer in the same generation, and the first is quarantined", async () => {
    world = await marketWorld({ kinds: [{ ...cheap, taken: 2 }, dear] });
    const { workloadId } = await world.submit(gpu);
    await world.place();
    expect(await eventOf(world, workloadId, "workload.placement_failed")).toMatchObject({
      sku: "sim-h100-cheap",
      code: "no_capacity",
      attempt: 1,
      quarantined_until: "2026-03-01T00:02:00.000Z",
    });
    expect(await inUse(world)).toEqual(NOTHING_IN_USE);
    await until(world, settled(world, workloadId));
    expect(await workloadOf(world, workloadId)).toMatchObject({ status: "completed" });
    const placements = await world.db.rows(Placement, "");
    expect(placements).toMatchObject([
      { sku: "sim-h100-dear", attempts: 2, generation: 1, rateMicrosPerHour: 3_000_000n },
    ]);
    expect(await inUse(world)).toEqual(NOTHING_IN_USE);
  });

  test("a machine that is said to run while its runner never connects is given up at the boot deadline", async () => {
    world = await marketWorld({ kinds: [cheap, dear], misbehaviour: { mute: 1 } });
    const { workloadId } = await world.submit(gpu);
    await world.place();
    const started = world.clock.now().getTime();
    world.driver.misbehaviour.mute = 0;
    await until(world, settled(world, workloadId));
    expect(await eventOf(world, workloadId, "workload.placement_failed")).toMatchObject({
      code: "boot_timeout",
      sku: cheap.sku,
    });
    const [placement] = await world.db.rows(Placement, "");
    expect(placement).toMatchObject({ sku: dear.sku, outcome: "completed", attempts: 2 });
    expect(placement!.runningAt!.getTime() - started).toBeLessThan(65_000);
    expect(await inUse(world)).toEqual(NOTHING_IN_USE);
  });

  test("a machine that vanishes while it boots is noticed within a look, not at the deadline", async () => {
    world = await marketWorld({ kinds: [{ ...cheap, bootMs: 50_000 }, dear] });
    const { workloadId } = await world.submit(gpu);
    await world.place();
    await until(world, () => world.clock.now().getTime() >= Date.parse("2026-03-01T00:00:08Z"));
    const [order] = world.market.live;
    world.market.end(order!.id);
    await until(world, async () => "sku" in (await eventOf(world, workloadId, "workload.placement_failed")));
    expect(world.clock.now().getTime()).toBeLessThan(Date.parse("2026-03-01T00:00:13Z"));
    expect(await eventOf(world, workloadId, "workload.placement_failed")).toMatchObject({ code: "supplier_lost_it" });
    await until(world, settled(world, workloadId));
    expect(await inUse(world)).toEqual(NOTHING_IN_USE);
  });

  test("with one offer alone it is tried again after its quarantine, which grows and is forgotten after a success", async () => {
    world = await marketWorld({ kinds: [{ ...cheap, taken: 2 }] });
    const { workloadId } = await world.submit(gpu);
    await world.place();
    await until(world, async () => (await failures()) === 2);
    expect(world.clock.now().getTime()).toBeGreaterThanOrEqual(Date.parse("2026-03-01T00:02:00Z"));
    expect((await workloadOf(world, workloadId)).waitingReason ?? "offers_quarantined").toBe("offers_quarantined");
    const [offer] = await world.db.rows(Offer, "");
    expect(offer!.quarantinedUntil!.getTime() - world.clock.now().getTime()).toBeGreaterThan(230_000);
    world.market.change(cheap.sku, cheap.region, { taken: 0 });
    await until(world, settled(world, workloadId));
    expect(await failures()).toBe(0);
    expect(await workloadOf(world, workloadId)).toMatchObject({ status: "completed" });
  });

  async function failures(): Promise<number> {
    return (await world.db.rows(Offer, ""))[0]!.failuresInRow;
  }
});

describe("a launch whose answer is lost", () => {
  test("and that took effect is found by looking, without a second order", async () => {
    world = await marketWorld({ misbehaviour: { lostReply: 1 } });
    const { workloadId } = await world.submit();
    await world.place();
    await until(world, settled(world, workloadId));
    expect(world.market.orders.size).toBe(1);
    expect(await workloadOf(world, workloadId)).toMatchObject({ status: "completed" });
  });

  test("and that never arrived is sent again under the same id", async () => {
    world = await marketWorld({ misbehaviour: { lostRequest: 1 } });
    const { workloadId } = await world.submit();
    await world.place();
    expect(world.market.orders.size).toBe(0);
    world.driver.misbehaviour.lostRequest = 0;
    await until(world, settled(world, workloadId));
    const attempts = await world.db.rows(Attempt, "");
    expect(attempts.map((a) => a.id)).toEqual([...world.market.orders.keys()]);
  });

  test("whose launch was not answered is ended before it counts as gone when its repetition is refused: the first may still arrive", async () => {
    world = await marketWorld();
    await world.submit();
    world.driver.misbehaviour.lostRequest = 1;
    await world.place();
    const [first] = await world.db.rows(Attempt, "");
    Object.assign(world.driver.misbehaviour, { lostRequest: 0, noCapacity: 1 });
    const { id, sku, region } = first!;
    await until(world, async () => (await world.db.row(Attempt, "where t.id = $1", [id]))?.state === "gone");
    expect(await world.db.row(Attempt, "where t.id = $1", [id])).toMatchObject({ failureCode: "no_capacity" });
    expect(world.market.launch({ orderId: id, sku, region, token: "late" }, false)).toBe("ended");
  });

  test("of a process that died before it could launch is launched by another", async () => {
    world = await marketWorld();
    const { workloadId } = await world.submit();
    const dead = withCalls(world.driver, { launch: () => new Promise(() => {}) });
    void createPlacer(workerDeps(world.deps, dead)).placeBatch({ signal: staying });
    await expect.poll(async () => (await world.db.rows(Attempt, "")).length).toBe(1);
    await until(world, settled(world, workloadId));
    expect(world.market.orders.size).toBe(1);
  });
});
