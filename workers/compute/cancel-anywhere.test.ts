import { afterEach, describe, expect, test } from "vitest";
import { finishWorkload, requestStop } from "../../subgraphs/compute/lifecycle/finish.commands.ts";
import { Attempt } from "../../subgraphs/compute/placement/placement.entity.ts";
import { CPU_KIND } from "../../tests/support/market-kinds.ts";
import {
  inUse,
  type MarketWorld,
  marketWorld,
  NOTHING_IN_USE,
  runDueJobs,
  staying,
  until,
  withCalls,
  workerDeps,
  workloadOf,
} from "../../tests/support/market-world.ts";
import { createPlacer } from "./place-stage.ts";

let world: MarketWorld;
afterEach(() => world.close());

describe("a cancel leaves nothing behind", () => {
  async function cancel(workloadId: string): Promise<void> {
    await world.db.command(async (tx) => {
      const now = world.clock.now();
      await tx.sql("update compute.workload set cancel_requested_at = $2 where id = $1", [workloadId, now]);
      if ((await requestStop(tx, workloadId, "cancel", now)) === "nothing_running")
        await finishWorkload(tx, { workloadId, event: "cancel", reason: "cancelled", message: "Cancelled.", now });
    });
  }

  async function expectNothingLeft(workloadId: string): Promise<void> {
    await until(world, async () => {
      const open = await world.db.rows(Attempt, "where t.state <> 'gone'");
      const over = (await workloadOf(world, workloadId)).terminalAt !== null;
      return over && open.length === 0 && world.market.live.length === 0;
    });
    await runDueJobs(world);
    expect(await workloadOf(world, workloadId)).toMatchObject({ status: "cancelled", waitingReason: null });
    expect(await inUse(world)).toEqual(NOTHING_IN_USE);
  }

  /** Places what waits with a slow supplier, which takes the order in once the function that this answers is called. */
  async function launchUnderWay(): Promise<() => Promise<unknown>> {
    const slow = Promise.withResolvers<void>();
    const driver = withCalls(world.driver, {
      launch: async (order) => {
        await slow.promise;
        return world.driver.launch(order);
      },
    });
    const placing = createPlacer(workerDeps(world.deps, driver)).placeBatch({ signal: staying });
    await expect.poll(async () => (await world.db.rows(Attempt, "")).length).toBe(1);
    return () => {
      slow.resolve();
      return placing;
    };
  }

  const long = () => ({ steps: [{ waitMs: 3_000_000 }] });

  test("before anybody looked for capacity", async () => {
    world = await marketWorld();
    const { workloadId } = await world.submit();
    await cancel(workloadId);
    expect(await world.place()).toEqual({ looked: 0, placed: 0 });
    await expectNothingLeft(workloadId);
  });

  test("while it waits for capacity", async () => {
    world = await marketWorld();
    const { workloadId } = await world.submit({ spec: { gpu: "H100" } });
    await world.place();
    await cancel(workloadId);
    await expectNothingLeft(workloadId);
  });

  test("while its launch is under way, even when the end overtakes it", async () => {
    world = await marketWorld({ scripts: long });
    const { workloadId } = await world.submit();
    const finishLaunch = await launchUnderWay();
    await cancel(workloadId);
    await runDueJobs(world);
    await finishLaunch();
    await expectNothingLeft(workloadId);
  });

  test("while the supplier forgot that the order was ended before it came", async () => {
    world = await marketWorld({ scripts: long });
    const { workloadId } = await world.submit();
    const finishLaunch = await launchUnderWay();
    const forgetful = withCalls(world.driver, { terminate: async () => "gone" });
    await cancel(workloadId);
    await runDueJobs({ ...world, deps: workerDeps(world.deps, forgetful) });
    expect(await inUse(world)).toEqual(NOTHING_IN_USE);
    await finishLaunch();
    await expectNothingLeft(workloadId);
  });

  test("while it boots", async () => {
    world = await marketWorld({ kinds: [{ ...CPU_KIND, bootMs: 30_000 }] });
    const { workloadId } = await world.submit();
    await world.place();
    expect(world.market.live).toHaveLength(1);
    await cancel(workloadId);
    await expectNothingLeft(workloadId);
  });

  test("while its inputs are staged", async () => {
    world = await marketWorld({ scripts: () => ({ ...long(), stagingMs: 60_000 }) });
    const { workloadId } = await world.submit();
    await world.place();
    await until(world, async () => (await world.db.rows(Attempt, ""))[0]!.sessionHash !== null);
    await cancel(workloadId);
    await expectNothingLeft(workloadId);
  });

  test.each([
    ["runs", false],
    ["runs and takes no notice", true],
  ])("while it %s", async (_, ignoresCancel) => {
    world = await marketWorld({ scripts: () => ({ ...long(), ignoresCancel }) });
    const { workloadId } = await world.submit();
    await world.place();
    await until(world, async () => (await workloadOf(world, workloadId)).status === "running");
    await cancel(workloadId);
    await expectNothingLeft(workloadId);
    expect((await workloadOf(world, workloadId)).reason).toBe("cancelled");
  });

  test("after a failed boot, while it looks for the next offer", async () => {
    world = await marketWorld({ kinds: [{ ...CPU_KIND, taken: 1 }] });
    const { workloadId } = await world.submit();
    await world.place();
    expect((await world.db.rows(Attempt, "")).map((a) => a.state)).toEqual(["gone"]);
    await cancel(workloadId);
    await expectNothingLeft(workloadId);
  });

  test("while it recovers from a lost machine", async () => {
    world = await marketWorld({ scripts: () => ({ steps: [{ waitMs: 20_000 }, { die: true }] }) });
    const { workloadId } = await world.submit();
    await world.place();
    await until(world, async () => (await workloadOf(world, workloadId)).status === "running");
    await world.db.sql("update compute.account set payment_method = false"); // no second generation
    const [order] = world.market.live;
    world.market.end(order!.id);
    await until(world, async () => (await workloadOf(world, workloadId)).status === "recovering");
    await cancel(workloadId);
    await expectNothingLeft(workloadId);
  });
});
