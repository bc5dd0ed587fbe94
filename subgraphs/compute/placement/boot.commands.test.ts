import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Tx } from "../../../infra/db/database.ts";
import { IdempotencyKey } from "../../../infra/db/idempotency.ts";
import { OutboxRow } from "../../../infra/db/outbox.ts";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { computeSettings, insertAccount, insertPlaced, type Placed } from "../../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { lifecycleDeps, MiniatureHost } from "../../../tests/support/miniature-host.ts";
import { Account } from "../account/account.entity.ts";
import { computeEntities } from "../entities.ts";
import type { LifecycleDeps } from "../lifecycle/lifecycle-deps.ts";
import { settle } from "../lifecycle/settlement.commands.ts";
import { Stage } from "../stage/stage.entity.ts";
import { Workload } from "../workload/workload.entity.ts";
import { failBoot, loseStuckStaging, settleLaunched, stagingDeadline } from "./boot.commands.ts";
import { Attempt, Placement } from "./placement.entity.ts";

let database: TestDatabase;
let deps: LifecycleDeps;
let placed: Placed;
let host: MiniatureHost;

beforeAll(async () => {
  database = await testDatabase([...computeEntities, OutboxRow, IdempotencyKey]);
  deps = lifecycleDeps(database.db, new FakeClock("2026-03-01T00:00:00Z"));
});
afterAll(() => database.close());
beforeEach(async () => {
  await deps.db.sql("truncate compute.account, compute.workload");
  await insertAccount(deps.db, deps.clock.now());
  placed = await insertPlaced(deps.db, deps.clock.now());
  host = await MiniatureHost.open(deps, placed);
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

test("orders are settled although another command locked the same attempts the other way round", async () => {
  const { db, clock } = deps;
  const orders = [placed.orderId, (await insertPlaced(db, clock.now())).orderId];
  await db.sql("update compute.attempt set state = 'launching' where id = any($1)", [orders]);
  const lock = (tx: Tx, id: string) => tx.sql("select 1 from compute.attempt where id = $1 for update", [id]);
  let settled: Promise<string[]> | undefined;
  await db.command(async (tx) => {
    await lock(tx, orders[1]!);
    settled ??= settleLaunched(
      db,
      orders.map((orderId) => ({ orderId, fence: 1 })),
      clock.now(),
    );
    await waitsForLock();
    await lock(tx, orders[0]!);
  });
  expect(await settled).toEqual([]);
  const states = await db.rows(Attempt, "where t.id = any($1)", [orders]);
  expect(states.map((a) => a.state)).toEqual(["booting", "booting"]);
});

/** Resolves when somebody waits for a row, or nobody does any more because it is all done. */
async function waitsForLock(): Promise<void> {
  for (let i = 0; i < 200; i++) {
    const [waiting] = await deps.db.sql(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    if (waiting) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

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
