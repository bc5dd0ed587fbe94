import { afterEach, describe, expect, test } from "vitest";
import type { Scripts } from "../../infra/drivers/simulated/script.ts";
import { LedgerEntry } from "../../subgraphs/compute/ledger/ledger-entry.entity.ts";
import { chargeFor } from "../../subgraphs/compute/ledger/price.ts";
import { Placement } from "../../subgraphs/compute/placement/placement.entity.ts";
import { insertWorkload } from "../../tests/support/compute-fixtures.ts";
import { H100_KIND } from "../../tests/support/market-kinds.ts";
import {
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

async function submitted(options: MarketWorldOptions, over?: Parameters<typeof insertWorkload>[2]): Promise<string> {
  world = await marketWorld(options);
  const { workloadId } = await world.submit(over);
  await world.place();
  return workloadId;
}

describe("three failures are told apart", () => {
  test("a command that ends at once with an error", async () => {
    const workloadId = await submitted({ scripts: () => ({ steps: [], exit: { code: 7 } }) });
    await until(world, settled(world, workloadId));
    expect(await workloadOf(world, workloadId)).toMatchObject({
      status: "failed",
      reason: "exit_nonzero",
      exitCode: 7,
    });
  });

  test("a command that cannot be started, which is the workload's fault and not the offer's", async () => {
    const startFailure = { kind: "not_found", message: "no such command" } as const;
    const scripts: Scripts = () => ({ steps: [], exit: { startFailure } });
    const workloadId = await submitted({ scripts });
    await until(world, settled(world, workloadId));
    const failed = await workloadOf(world, workloadId);
    expect(failed).toMatchObject({ status: "failed", exitCode: null, spendMicros: 0n });
    expect(failed.reason).not.toBe("exit_nonzero");
    expect(await world.db.sql("select failures_in_row from compute.offer")).toEqual([{ failures_in_row: 0 }]);
  });

  test("capacity that is missing, which is no failure", async () => {
    const workloadId = await submitted({ kinds: [{ ...H100_KIND, taken: 2 }] }, { spec: { gpu: "H100" } });
    await until(world, async () => (await workloadOf(world, workloadId)).waitingReason !== null);
    expect(await workloadOf(world, workloadId)).toMatchObject({
      status: "planning",
      waitingReason: "offers_quarantined",
    });
  });
});

test("losing the machine while a recovery is being set up is another recovery, not a failure", async () => {
  let runs = 0;
  const scripts: Scripts = () =>
    [{ steps: [{ waitMs: 5_000 }, { die: true as const }] }, { steps: [], stagingMs: 3_000_000 }, { steps: [] }][
      runs++
    ]!;
  const workloadId = await submitted({ scripts });
  await until(world, async () => (await workloadOf(world, workloadId)).status === "running");
  const endLive = () => {
    for (const { id } of world.market.live) world.market.end(id);
  };
  await until(world, () => world.clock.now().getTime() >= Date.parse("2026-03-01T00:00:10Z"));
  endLive();
  await until(world, () => runs === 2);
  endLive();
  await until(world, settled(world, workloadId));
  expect(await workloadOf(world, workloadId)).toMatchObject({ status: "completed" });
  expect(runs).toBe(3);
  expect(await inUse(world)).toEqual(NOTHING_IN_USE);
});

test.each([1, 2, 4, 8] as const)("for %i devices the price shown is the price charged", async (gpuCount) => {
  const kinds = [1, 2, 4, 8].map((n) => ({
    ...H100_KIND,
    sku: `sim-h100-${n}x`,
    gpuCount: n,
    rateMicrosPerHour: 2_000_000n * BigInt(n),
  }));
  const spec = { gpu: "H100", gpuCount };
  const workloadId = await submitted({ kinds, scripts: () => ({ steps: [{ waitMs: 36_000 }] }) }, { spec });
  await until(world, settled(world, workloadId));
  const [placement] = await world.db.rows(Placement, "");
  expect(placement).toMatchObject({
    sku: `sim-h100-${gpuCount}x`,
    gpuCount,
    rateMicrosPerHour: 2_000_000n * BigInt(gpuCount),
  });
  const charged = await world.db.rows(LedgerEntry, "where t.entry_type = 'customer_charge'");
  const sum = charged.reduce((total, e) => total + e.creditMicros, 0n);
  expect(sum).toBe(chargeFor(placement!, placement!.ranMs!).totalMicros);
  expect(sum).toBe(22_000n * BigInt(gpuCount));
  expect((await workloadOf(world, workloadId)).spendMicros).toBe(sum);
});
