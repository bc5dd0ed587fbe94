import { beforeEach, expect, test } from "vitest";
import { computeSettings, insertPlaced, type Placed } from "../../../tests/support/compute-fixtures.ts";
import { insertHosted, lifeOfEachTest } from "../../../tests/support/lifecycle-world.ts";
import type { MiniatureHost } from "../../../tests/support/miniature-host.ts";
import { Account } from "../account/account.entity.ts";
import { settle } from "../lifecycle/settlement.commands.ts";
import { Stage } from "../stage/stage.entity.ts";
import { Workload } from "../workload/workload.entity.ts";
import { failBoot, loseStuckStaging, settleLaunched, stagingDeadline } from "./boot.commands.ts";
import { Attempt, Placement } from "./placement.entity.ts";

const deps = lifeOfEachTest();
let placed: Placed;
let host: MiniatureHost;
beforeEach(async () => {
  ({ placed, host } = await insertHosted(deps));
});

const fail = () =>
  deps.db.command((tx) => {
    const failure = { orderId: placed.orderId, code: "supplier_lost_it", message: "gone", gone: true } as const;
    return failBoot(tx, failure, computeSettings, deps.clock.now());
  });
const placement = async () => (await deps.db.row(Placement, "where t.id = $1", [placed.placementId]))!;
const stage = async () => (await deps.db.row(Stage, "where t.id = $1", [placed.stageRunId]))!;
const held = async () => (await deps.db.rows(Account, ""))[0]!.heldMicros;

test("a generation whose order came to nothing goes on with the next one, and its money comes back once", async () => {
  await host.apply(host.phase("staging"));
  expect([await fail(), await fail()]).toEqual([true, false]);
  expect(await placement()).toMatchObject({ state: "provisioning", heldMicros: 0n });
  expect(await stage()).toMatchObject({ status: "placing", generation: 1, recoveries: 0 });
  expect(await held()).toBe(0n);
});

test.each([
  ["a log", () => [host.log(Buffer.from("staging…"))]],
  ["an exit", () => [host.exit({ code: null, startFailure: { kind: "staging", message: "no input" } })]],
])("an order that left %s before it was lost has no successor in its generation", async (_, said) => {
  await host.apply(...said());
  expect([await fail(), await fail()]).toEqual([true, false]);
  expect(await placement()).toMatchObject({ state: "ended", outcome: "lost", runningAt: null });
  expect(await stage()).toMatchObject({ status: "placing", recoveries: 1 });
  expect(await deps.db.row(Workload, "where t.id = $1", [placed.workloadId])).toMatchObject({ status: "recovering" });
  expect(await deps.db.command((tx) => settle(tx, placed.placementId, deps.clock.now()))).toBe("settled");
  expect(await held()).toBe(0n);
});

test("an order whose attempt somebody holds keeps those that were launched with it, or after it, from nothing", async () => {
  const { db, clock } = deps;
  const orders = [placed.orderId, (await insertPlaced(db, clock.now())).orderId];
  await db.sql("update compute.attempt set state = 'launching' where id = any($1)", [orders]);
  const settle = (...orderIds: string[]) =>
    settleLaunched(
      db,
      orderIds.map((orderId) => ({ orderId, fence: 1 })),
      clock.now(),
    );
  const states = async () =>
    (await db.rows(Attempt, "where t.id = any($1) order by t.id", [orders])).map((a) => a.state);
  await db.command(async (tx) => {
    await tx.sql("select 1 from compute.attempt where id = $1 for update", [orders[0]]);
    expect(await settle(...orders)).toEqual([]);
    expect(await settle(orders[0]!)).toEqual([]);
    expect(await states()).toEqual(orders.toSorted().map((id) => (id === orders[0] ? "launching" : "booting")));
  });
  await settle(orders[0]!);
  expect(await states()).toEqual(["booting", "booting"]);
});

test("a host that connected and does not get to run its command in time loses its generation, once", async () => {
  const attempt = (await deps.db.row(Attempt, "where t.id = $1", [placed.orderId]))!;
  const late = stagingDeadline(attempt);
  const lose = (now: Date) => deps.db.command((tx) => loseStuckStaging(tx, placed.orderId, now));
  expect(await lose(new Date(late.getTime() - 1))).toBe(false);
  expect([await lose(late), await lose(late)]).toEqual([true, false]);
  expect(await placement()).toMatchObject({ state: "ended", outcome: "lost", interruptTrigger: "runner_lost" });
  expect(await stage()).toMatchObject({ status: "placing", recoveries: 1, failedOfferIds: ["off_fixture"] });
});

test("a host that runs its command is not taken for one that is stuck", async () => {
  await host.apply(host.running());
  const attempt = (await deps.db.row(Attempt, "where t.id = $1", [placed.orderId]))!;
  expect(await deps.db.command((tx) => loseStuckStaging(tx, placed.orderId, stagingDeadline(attempt)))).toBe(false);
  expect(await placement()).toMatchObject({ state: "running" });
});
