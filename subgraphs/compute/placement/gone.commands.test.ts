import { beforeEach, expect, test } from "vitest";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { computeSettings, type Placed, TENANT } from "../../../tests/support/compute-fixtures.ts";
import { insertHosted, lifeOfEachTest } from "../../../tests/support/lifecycle-world.ts";
import type { MiniatureHost } from "../../../tests/support/miniature-host.ts";
import { beat } from "../lifecycle/session.commands.ts";
import { loseIfStillGone, noteGone } from "./gone.commands.ts";
import { Placement } from "./placement.entity.ts";

const deps = lifeOfEachTest();
let placed: Placed;
let host: MiniatureHost;

beforeEach(async () => {
  ({ placed, host } = await insertHosted(deps));
});

const lose = () => deps.db.command((tx) => loseIfStillGone(tx, placed.orderId, computeSettings, deps.clock.now()));
const placement = () => deps.db.row(Placement, "where t.id = $1", [placed.placementId]);
const order = () => ({ tenantId: TENANT, id: placed.orderId });
/** The supplier showed nothing of the order, and then time passed. */
async function seenGone(passedMs: number): Promise<void> {
  deps.clock.advance(1_000);
  await noteGone(deps.db, order(), deps.clock.now());
  deps.clock.advance(passedMs);
}

test("a machine that stays gone while its host is silent is lost, once, for the reason that was announced", async () => {
  await host.apply(host.running());
  await deps.db.sql("update compute.placement set interrupt_trigger = 'reclaim'");
  await seenGone(LIMITS.goneToLostMs);
  expect([await lose(), await lose()]).toEqual([true, false]);
  expect(await placement()).toMatchObject({ state: "ended", outcome: "lost", interruptTrigger: "reclaim" });
});

test("a machine that is gone before its command ran fails its boot, and the generation goes on", async () => {
  await seenGone(LIMITS.goneToLostMs);
  expect([await lose(), await lose()]).toEqual([true, false]);
  expect(await placement()).toMatchObject({ state: "provisioning", heldMicros: 0n });
});

test("a host that is heard in the moment before the verdict keeps its run", async () => {
  await host.apply(host.running());
  await seenGone(LIMITS.goneToLostMs);
  await beat(deps, host.session);
  expect(await lose()).toBe(false);
  expect(await placement()).toMatchObject({ state: "running" });
});

test.each([-LIMITS.clockSkewMs, LIMITS.clockSkewMs])(
  "a beat counts as one whichever way the clock of the process that took it differs: %i ms",
  async (skewMs) => {
    const beatElsewhere = async () => {
      deps.clock.stepWall(skewMs);
      await beat(deps, host.session);
      deps.clock.stepWall(-skewMs);
    };
    await host.apply(host.running());
    await beatElsewhere();
    await seenGone(LIMITS.goneToLostMs);
    await beatElsewhere();
    expect(await lose()).toBe(false);
    await noteGone(deps.db, order(), deps.clock.now());
    deps.clock.advance(LIMITS.goneToLostMs);
    expect(await lose()).toBe(true);
  },
);

test("nothing is lost before its time, nor an order that was seen again meanwhile", async () => {
  await host.apply(host.running());
  await seenGone(LIMITS.goneToLostMs - 1);
  expect(await lose()).toBe(false);
  await deps.db.sql("update compute.attempt set gone_seen_at = null");
  deps.clock.advance(1);
  expect(await lose()).toBe(false);
  expect(await placement()).toMatchObject({ state: "running" });
});
