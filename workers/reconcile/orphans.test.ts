import { afterEach, expect, test } from "vitest";
import { newId } from "../../infra/kernel/ids.ts";
import { finishWorkload } from "../../subgraphs/compute/lifecycle/finish.commands.ts";
import { Attempt } from "../../subgraphs/compute/placement/placement.entity.ts";
import { CPU_KIND } from "../../tests/support/market-kinds.ts";
import {
  inUse,
  type MarketWorld,
  marketWorld,
  NOTHING_IN_USE,
  runDueJobs,
  staying,
} from "../../tests/support/market-world.ts";
import { orphansReconciler } from "./orphans.ts";

let world: MarketWorld;
afterEach(() => world.close());

test("an order that nobody knows is ended at the second sighting, and those that are known run on", async () => {
  world = await marketWorld({ kinds: [{ ...CPU_KIND, bootMs: 3_000_000 }] });
  await world.submit();
  await world.place();
  const stray = newId("order", world.clock.now());
  world.market.launch({ orderId: stray, sku: CPU_KIND.sku, region: CPU_KIND.region, token: "" }, true);
  const reconciler = orphansReconciler(world.deps, world.driver);
  await reconciler.run(staying, null);
  expect(world.market.live).toHaveLength(2);
  await reconciler.run(staying, null);
  const [known] = await world.db.rows(Attempt, "");
  expect(world.market.live.map((o) => o.id)).toEqual([known!.id]);
});

test("what the supplier called gone and runs on is found and ended", async () => {
  world = await marketWorld({ kinds: [{ ...CPU_KIND, bootMs: 3_000_000 }], misbehaviour: { lie: 1 } });
  const { workloadId } = await world.submit();
  await world.place();
  const now = world.clock.now();
  const end = { workloadId, event: "cancel", reason: "cancelled", message: "Cancelled.", now } as const;
  await world.db.command((tx) => finishWorkload(tx, end));
  await runDueJobs(world);
  expect(await world.db.rows(Attempt, "")).toMatchObject([{ state: "gone" }]);
  expect(world.market.live).toHaveLength(1);
  const reconciler = orphansReconciler(world.deps, world.driver);
  await reconciler.run(staying, null);
  await reconciler.run(staying, null);
  expect(await inUse(world)).toEqual(NOTHING_IN_USE);
});

test("a supplier that cannot tell, or that holds orders of others, loses nothing", async () => {
  world = await marketWorld({ kinds: [{ ...CPU_KIND, bootMs: 3_000_000 }] });
  world.market.launch({ orderId: "i-0123", sku: CPU_KIND.sku, region: CPU_KIND.region, token: "" }, true);
  const reconciler = orphansReconciler(world.deps, world.driver);
  for (let i = 0; i < 3; i++) await reconciler.run(staying, null);
  world.driver.silent = true;
  for (let i = 0; i < 3; i++) await reconciler.run(staying, null);
  expect(world.market.live.map((o) => o.id)).toEqual(["i-0123"]);
});
