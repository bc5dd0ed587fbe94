import { afterEach, expect, test } from "vitest";
import type { Scripts } from "../../infra/drivers/simulated/script.ts";
import { seededRandom } from "../../infra/drivers/simulated/seeded-random.ts";
import { trialBalance } from "../../subgraphs/compute/ledger/ledger.commands.ts";
import { Attempt } from "../../subgraphs/compute/placement/placement.entity.ts";
import { Workload } from "../../subgraphs/compute/workload/workload.entity.ts";
import { CPU_KIND } from "../../tests/support/market-kinds.ts";
import { inUse, type MarketWorld, marketWorld, NOTHING_IN_USE, until } from "../../tests/support/market-world.ts";

let world: MarketWorld;
afterEach(() => world.close());

const WORKLOADS = 12;

test.each([1, 2, 3])(
  "on a market where everything goes wrong now and then (seed %i) all work ends well and nothing is left behind",
  { timeout: 120_000 },
  async (seed) => {
    const random = seededRandom(seed * 1_000);
    const scripts: Scripts = () => ({
      steps: [
        { log: "hello\n" },
        { waitMs: Math.floor(random() * 60_000) },
        ...(random() < 0.2 ? [{ die: true as const }] : []),
      ],
    });
    const kinds = ["a", "b", "c"].map((name, i) => ({
      ...CPU_KIND,
      sku: `sim-cpu-${name}`,
      ordersPerMachine: 4,
      taken: 0,
      bootMs: 1_000 * i,
      rateMicrosPerHour: 100_000n + 10_000n * BigInt(i),
      priceSwing: 0.3,
    }));
    const misbehaviour = { noCapacity: 0.1, lostReply: 0.15, lostRequest: 0.15, mute: 0.1, timeout: 0.15, lie: 0.15 };
    world = await marketWorld({ kinds, scripts, misbehaviour, seed });
    for (let i = 0; i < WORKLOADS; i++) {
      const { stageRunId } = await world.submit();
      await world.db.sql("update compute.stage set next_try_at = $2 where id = $1", [
        stageRunId,
        new Date(world.clock.now().getTime() + i * 5_000),
      ]);
    }
    // A machine whose guest died without a word is noticed by its lease, which is the lifecycle's part; here the market
    // takes such machines away, so that the supplier's word is the second signal.
    const sweep = () => {
      for (const order of world.market.live) if (order.runner?.dead) world.market.end(order.id);
    };
    await until(
      world,
      async () => {
        sweep();
        const open = await world.db.rows(Attempt, "where t.state <> 'gone'");
        const unsettled = await world.db.rows(Workload, "where t.settled_at is null");
        return open.length + unsettled.length + world.market.live.length === 0;
      },
      1_000,
    );
    const ended = await world.db.rows(Workload, "");
    expect(ended.map((w) => w.status)).toEqual(Array(WORKLOADS).fill("completed"));
    expect(await inUse(world)).toEqual(NOTHING_IN_USE);
    expect(await trialBalance(world.db, null)).toBe(0n);
    const launches = await world.db.rows(Attempt, "");
    expect(world.market.orders.size).toBeLessThanOrEqual(launches.length);
  },
);
