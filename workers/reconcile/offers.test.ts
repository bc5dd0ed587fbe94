import { afterEach, beforeEach, expect, test } from "vitest";
import type { OfferFact } from "../../infra/drivers/driver.ts";
import { Capacity, Offer } from "../../subgraphs/compute/offer/offer.entity.ts";
import { recordBootFailure, recordBootSuccess } from "../../subgraphs/compute/offer/offer-health.commands.ts";
import { cheapestMatchingOffer, OfferMarket } from "../../subgraphs/compute/offer/offer-market.ts";
import { syncOffers } from "../../subgraphs/compute/offer/sync-offers.commands.ts";
import { topics } from "../../subgraphs/compute/topics.ts";
import { computeSettings, stageSpec, TENANT } from "../../tests/support/compute-fixtures.ts";
import { CPU_KIND, H100_KIND } from "../../tests/support/market-kinds.ts";
import { type MarketWorld, marketWorld } from "../../tests/support/market-world.ts";
import { offersReconciler } from "./offers.ts";
import type { Reconciler } from "./schedule.ts";

let world: MarketWorld;
let reconciler: Reconciler;
let woken: number;

beforeEach(async () => {
  world = await marketWorld({ kinds: [CPU_KIND, H100_KIND] });
  reconciler = offersReconciler(world.deps, world.driver);
  woken = 0;
  world.deps.wakeups.on(topics.capacity, () => woken++);
});
afterEach(() => world.close());

const signal = new AbortController().signal;

/** A round of the reconciler, long enough after the last one to be its own. */
async function round(): Promise<void> {
  await world.clock.advance(3_000);
  await reconciler.run(signal, null);
}

const offers = () => world.db.rows(Offer, "order by t.sku");
const view = async (market: OfferMarket) => (await market.view(world.db, world.clock.now())).offers;

test("totals follow the supplier and what is reserved stays", async () => {
  await world.db.sql("update compute.capacity set slots_used = 3, cpu_millis_used = 300");
  world.market.change("sim-cpu", "sim-east", { machines: 5 });
  await round();
  const [cpu] = await world.db.rows(Capacity, "where t.id = 'simulated/sim-east/sim-cpu'");
  expect(cpu).toMatchObject({ slots: 40, cpuMillis: 20_000, slotsUsed: 3, cpuMillisUsed: 300 });
  expect(woken).toBe(1);
});

test("a round that brings nothing new writes a sign of life and wakes nobody", async () => {
  const before = await offers();
  await round();
  await round();
  expect(await offers()).toEqual(before);
  expect(await world.db.sql("select version, seen_at from compute.supplier")).toEqual([
    { version: 1, seen_at: world.clock.now() },
  ]);
  expect(woken).toBe(0);
});

test("what is no longer offered is withdrawn, and comes back under the same id with its record", async () => {
  const [, h100] = await offers();
  await world.db.command((tx) => recordBootFailure(tx, h100!.id, computeSettings, world.clock.now()));
  world.market.change("sim-h100-1x", "sim-east", { machines: 0 });
  await round();
  expect((await offers())[1]).toMatchObject({ id: h100!.id, withdrawnAt: world.clock.now() });
  expect(woken).toBe(0);
  await syncOffers(world.db, "simulated", [...world.market.offers(), fact(H100_KIND)], world.clock.now());
  expect((await offers())[1]).toMatchObject({ id: h100!.id, withdrawnAt: null, failuresInRow: 1 });
  expect(woken).toBe(1);
});

function fact(kind: typeof H100_KIND): OfferFact {
  const { machines: _, ordersPerMachine: __, bootMs: ___, ...said } = kind;
  const capacity = { key: "sim-east/sim-h100-1x", cpuMillis: 8_000, memoryMb: 32_768, gpus: 2, slots: 2 };
  return { ...said, simulated: true, capacity };
}

test("a supplier that stays silent loses its offers, and nothing is chosen from it even before", async () => {
  world.driver.silent = true;
  await unanswered();
  expect((await offers()).map((o) => o.withdrawnAt)).toEqual([null, null]);
  await world.clock.advance(25_000);
  const { silentSuppliers } = await world.deps.market.view(world.db, world.clock.now());
  expect([...silentSuppliers]).toEqual(["simulated"]);
  await unanswered();
  expect((await offers()).every((o) => o.withdrawnAt !== null)).toBe(true);
  world.driver.silent = false;
  await round();
  expect((await offers()).map((o) => o.withdrawnAt)).toEqual([null, null]);
});

/** A round in which time passes until it gives up on its answer. */
async function unanswered(): Promise<void> {
  await world.clock.advance(3_000);
  let over = false;
  const run = reconciler.run(signal, null).then(() => (over = true));
  while (!over) {
    await world.clock.advance(500);
    await new Promise((resolve) => setTimeout(resolve, 5)); // the database answers in real time
  }
  await run;
}

test("two processes do not both ask within one interval", async () => {
  let asked = 0;
  world.driver.offers = async () => {
    asked++;
    return world.market.offers();
  };
  await world.clock.advance(3_000);
  await reconciler.run(signal, null);
  await offersReconciler(world.deps, world.driver).run(signal, null);
  expect(asked).toBe(1);
});

test("quarantine doubles with each failure after it, counts a burst once, and ends with a success", async () => {
  const [cpu] = await offers();
  const minutes: number[] = [];
  const fail = () => world.db.command((tx) => recordBootFailure(tx, cpu!.id, computeSettings, world.clock.now()));
  for (let i = 0; i < 7; i++) {
    const until = await fail();
    expect(await fail()).toEqual(until);
    minutes.push((until!.getTime() - world.clock.now().getTime()) / 60_000);
    await world.clock.advance(until!.getTime() - world.clock.now().getTime());
  }
  expect(minutes).toEqual([2, 4, 8, 16, 32, 60, 60]);
  await world.db.command((tx) => recordBootSuccess(tx, cpu!.id));
  expect((await offers())[0]).toMatchObject({ failuresInRow: 0, quarantinedUntil: null });
  expect(
    await world.db.command((tx) => recordBootFailure(tx, "off_unknown", computeSettings, world.clock.now())),
  ).toBeNull();
});

test("boots that fail while their offer is quarantined do not wait for its supplier's row", async () => {
  const [cpu] = await offers();
  const fail = () => world.db.command((tx) => recordBootFailure(tx, cpu!.id, computeSettings, world.clock.now()));
  const until = await fail();
  const versions = () => world.db.sql("select version from compute.supplier");
  const before = await versions();
  await world.db.command(async (tx) => {
    await tx.sql("select 1 from compute.supplier for update");
    expect(await Promise.all(Array.from({ length: 8 }, fail))).toEqual(Array.from({ length: 8 }, () => until));
  });
  expect(await versions()).toEqual(before);
});

test("capacities are written in the order in which claims take them, whatever order the supplier tells them in", async () => {
  const facts = (grown: number) =>
    ["b", "a"].map((key) => ({
      ...fact({ ...H100_KIND, sku: key }),
      capacity: { key, cpuMillis: 8_000, memoryMb: 32_768, gpus: 2 + grown, slots: 2 },
    }));
  await syncOffers(world.db, "ordered", facts(0), world.clock.now());
  let synced: Promise<unknown> | undefined;
  await world.db.command(async (tx) => {
    const take = (key: string) => tx.sql("select 1 from compute.capacity where id = $1 for update", [`ordered/${key}`]);
    await take("a");
    synced ??= syncOffers(world.db, "ordered", facts(1), world.clock.now());
    for (let waiting: unknown[] = []; waiting.length === 0; )
      waiting = await world.db.sql(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
    // What waits for `a` must not hold `b`, or this would be refused.
    expect(await tx.sql("select 1 from compute.capacity where id = 'ordered/b' for update nowait")).toHaveLength(1);
  });
  await synced;
  expect(await world.db.rows(Capacity, "where t.supplier = 'ordered' and t.gpus = 3")).toHaveLength(2);
});

test("every process sees changes of every other one with its next look, and reads only what changed", async () => {
  const mine = new OfferMarket();
  expect((await view(mine)).map((o) => o.sku)).toEqual(["sim-cpu", "sim-h100-1x"]);
  const [cpu] = await offers();
  await world.db.command((tx) => recordBootFailure(tx, cpu!.id, computeSettings, world.clock.now()));
  const [seen, untouched] = await view(mine);
  expect(seen).toMatchObject({ id: cpu!.id, failuresInRow: 1 });
  await world.db.sql("update compute.offer set note = 'changed behind the version' where sku = 'sim-h100-1x'");
  expect((await view(mine))[1]).toBe(untouched);
});

test("the outlook on a price ignores what passes: silence, quarantine and other orders", async () => {
  const [cpu] = await offers();
  await world.db.command((tx) => recordBootFailure(tx, cpu!.id, computeSettings, world.clock.now()));
  await world.db.sql("update compute.capacity set slots_used = slots");
  const ask = {
    now: world.clock.now(),
    tenantId: TENANT,
    cpuFallback: true,
    defaults: { cpuMillis: 100, memoryMb: 512 },
  };
  const { cheapest } = await cheapestMatchingOffer(world.deps.market, world.db, stageSpec, ask);
  expect(cheapest).toMatchObject({ offer: { sku: "sim-cpu" }, cpuFallback: true });
  const nowhere = { ...stageSpec, gpu: "B200" };
  expect(await cheapestMatchingOffer(world.deps.market, world.db, nowhere, ask)).toEqual({
    cheapest: null,
    nearest: "gpu_family",
  });
});
