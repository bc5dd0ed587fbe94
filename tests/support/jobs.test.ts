import { expect, test } from "vitest";
import type { Queryer } from "../../infra/db/database.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { DONE, type Outcome } from "../../infra/queue/implement-job.ts";
import { deathAt, SimulatedDeath } from "../../roles/simulation/death.ts";
import { testDatabase } from "./database.ts";
import { type JobTrial, type JobWorld, jobContext, survivesBeingRunTwice, survivesDyingAtEveryStep } from "./jobs.ts";

/** A supplier that takes each order once, whatever it is asked. */
class Shop {
  readonly orders = new Set<string>();
  calls = 0;

  async buy(orderId: string): Promise<string> {
    this.calls++;
    this.orders.add(orderId);
    return `receipt of ${orderId}`;
  }
}

interface ShopWorld extends JobWorld {
  ports: { shop: Shop };
  close(): Promise<void>;
}

async function setup(): Promise<ShopWorld> {
  const database = await testDatabase([]);
  await database.db.sql("create table purchase (id text primary key, state text not null, receipt text)");
  await database.db.sql("insert into purchase values ('p1', 'wanted', null)");
  return { db: database.db, clock: new FakeClock(), ports: { shop: new Shop() }, close: database.close };
}

function trial(run: (world: ShopWorld) => Promise<Outcome>): JobTrial<ShopWorld> {
  return {
    setup,
    run,
    assert: async ({ db, ports }) => {
      expect(await purchases(db)).toEqual([{ id: "p1", state: "bought", receipt: "receipt of order-p1" }]);
      expect([...ports.shop.orders]).toEqual(["order-p1"]);
    },
    teardown: (world) => world.close(),
  };
}

function purchases(db: Queryer): Promise<unknown[]> {
  return db.sql("select id, state, receipt from purchase order by id");
}

/** Claims, acts with an id of its own, settles where nobody has settled. */
async function buySafely({ db, ports }: ShopWorld): Promise<Outcome> {
  await db.command((tx) => tx.sql("update purchase set state = 'claimed' where id = 'p1' and state = 'wanted'"));
  const [open] = await db.sql("select id from purchase where id = 'p1' and state = 'claimed'");
  if (!open) return DONE;
  const receipt = await ports.shop.buy("order-p1");
  await db.command((tx) =>
    tx.sql("update purchase set state = 'bought', receipt = $1 where id = 'p1' and state = 'claimed'", [receipt]),
  );
  return DONE;
}

test("a job that claims, acts by its own id and settles under a fence survives everything", async () => {
  await survivesBeingRunTwice(trial(buySafely));
  expect(await survivesDyingAtEveryStep(trial(buySafely))).toEqual([
    "command, before its commit",
    "command, committed",
    "statement, done: select id from purchase where id = 'p1' ",
    "shop.buy, called",
    "shop.buy, answered",
    "command, before its commit",
    "command, committed",
  ]);
});

test("a job that makes a new order id in each run is caught between the purchase and the settlement", async () => {
  const careless = async ({ db, ports }: ShopWorld): Promise<Outcome> => {
    const [open] = await db.sql("select id from purchase where id = 'p1' and state = 'wanted'");
    if (!open) return DONE;
    const fresh = ports.shop.orders.size === 0 ? "order-p1" : "another-order";
    const receipt = await ports.shop.buy(fresh);
    await db.command((tx) => tx.sql("update purchase set state = 'bought', receipt = $1 where id = 'p1'", [receipt]));
    return DONE;
  };
  await expect(survivesDyingAtEveryStep(trial(careless))).rejects.toThrow(
    /after a death at step 3 \(shop.buy, answered\)/,
  );
});

test("a job that adds a row in each run is caught by the second run", async () => {
  const careless = async (world: ShopWorld): Promise<Outcome> => {
    await world.db.sql("insert into purchase select 'p' || count(*) + 1, 'bought' from purchase");
    return buySafely(world);
  };
  await expect(survivesBeingRunTwice(trial(careless))).rejects.toThrow(/after two runs/);
});

test("a job that leaves its claim for good is caught by the run after the death", async () => {
  const forgetful = async ({ db, ports }: ShopWorld): Promise<Outcome> => {
    const claimed = await db.command((tx) =>
      tx.sql("update purchase set state = 'claimed' where id = 'p1' and state = 'wanted' returning id"),
    );
    if (claimed.length === 0) return DONE; // whoever claimed it will surely finish
    const receipt = await ports.shop.buy("order-p1");
    await db.command((tx) => tx.sql("update purchase set state = 'bought', receipt = $1 where id = 'p1'", [receipt]));
    return DONE;
  };
  await expect(survivesDyingAtEveryStep(trial(forgetful))).rejects.toThrow(
    /after a death at step 2 \(command, committed\)/,
  );
  const reconciled = {
    ...trial(forgetful),
    reconcile: async (world: ShopWorld) => {
      await world.db.sql("update purchase set state = 'wanted' where state = 'claimed'");
      await forgetful(world);
    },
  };
  await survivesDyingAtEveryStep(reconciled);
});

test("nothing that a dead process still tries has an effect", async () => {
  const world = await setup();
  const death = deathAt(1);
  const db = death.database(world.db);
  const shop = death.port("shop", world.ports.shop);
  expect(() => shop.buy("order-p1")).toThrow(SimulatedDeath);
  expect(() => shop.buy("order-p1")).toThrow(SimulatedDeath);
  await expect(db.command((tx) => tx.sql("delete from purchase"))).rejects.toThrow(SimulatedDeath);
  await expect(db.sql("delete from purchase")).rejects.toThrow(SimulatedDeath);
  expect(world.ports.shop.calls).toBe(0);
  expect(await purchases(world.db)).toHaveLength(1);
  await world.close();
});

test("a death before a commit takes the command back, one after it does not", async () => {
  for (const [n, left] of [
    [1, 1],
    [2, 0],
  ] as const) {
    const world = await setup();
    const db = deathAt(n).database(world.db);
    await expect(db.command((tx) => tx.sql("delete from purchase"))).rejects.toThrow(SimulatedDeath);
    expect(await purchases(world.db)).toHaveLength(left);
    await world.close();
  }
});

test("a job that asks to go on later is run again at that time", async () => {
  const patient = async (world: ShopWorld): Promise<Outcome> => {
    const { db, clock } = jobContext(world);
    const opensAt = new Date("2026-01-01T08:00:00Z");
    if (clock.now() < opensAt) return { outcome: "later", at: opensAt, reason: "the shop is closed" };
    expect(db).toBe(world.db);
    return buySafely(world);
  };
  expect(await survivesDyingAtEveryStep(trial(patient))).toHaveLength(7);
});

test("a job that is never done is told", async () => {
  const restless = async (): Promise<Outcome> => ({ outcome: "retry", reason: "not yet" });
  await expect(survivesBeingRunTwice(trial(restless))).rejects.toThrow(/not done after 20 runs.*not yet/);
});
