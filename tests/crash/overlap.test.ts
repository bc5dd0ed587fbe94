import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type CommandBounds, Database, sqlState, type Tx } from "../../infra/db/database.ts";
import { allEntities } from "../../roles/entities.ts";
import { Chance } from "../../roles/simulation/chance.ts";
import { leftOver, unsettled } from "../../roles/simulation/ending.ts";
import { brokenInvariants, NOT_OVERSOLD } from "../../roles/simulation/invariants.ts";
import { Mischief } from "../../roles/simulation/mischief.ts";
import { SIMULATED_KINDS } from "../../roles/simulation/settings.ts";
import { Trace } from "../../roles/simulation/trace.ts";
import { World } from "../../roles/simulation/world.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { LockOrder } from "../support/lock-order.ts";

/** More worlds: `NODUS_TEST_SEEDS=20 npm test -- tests/crash/overlap.test.ts`. */
const SEEDS = Number(process.env.NODUS_TEST_SEEDS ?? 2);
const FIRST_SEED = Number(process.env.NODUS_TEST_FIRST_SEED ?? 1);
const seeds = Array.from({ length: SEEDS }, (_, i) => FIRST_SEED + i);

const TOGETHER = 12;
const PROCESSES = 3;
const TEAMS = 6;
const MINUTE_MS = 60_000;
/** How long customers and mischief are busy, in simulated time. */
const BUSY_MS = 2 * MINUTE_MS;
/** Customers come in crowds, this often on average, and of so many at most. */
const CROWD_EVERY_MS = 6_000;
const CROWD = 20;
/** So many times the usual machines, so that claims of many teams are granted at once. */
const MACHINES = 4;
const MISCHIEF_EVERY_MS = 15_000;
/** All sentences are looked at after so many operations. */
const LOOK_EVERY = 400;

let under: TestDatabase;
let db: Database;
/** Runs of commands after the first one: only a deadlock makes one run again, and commands that keep one order of locks have none. */
let again: number;
/** Statements that somebody was told of as deadlocked. */
let surfaced: string[];
let order: LockOrder;
let pauses: Chance;

beforeEach(async () => {
  under = await testDatabase(allEntities);
  const name = new URL(under.url).pathname.slice(1);
  await under.db.sql(`alter database ${name} set deadlock_timeout = '100ms'`);
  db = await Database.open({ url: under.url, entities: allEntities, poolSize: TOGETHER + 2 });
  again = 0;
  order = new LockOrder();
  pauses = new Chance(FIRST_SEED);
  surfaced = [];
});
afterEach(async () => {
  await db?.close();
  await under?.close();
});

/** The database, with what happens to deadlocks noted. */
function watched(): Database {
  const telling = <T>(text: string, work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      if (sqlState(error) === "40P01") surfaced.push(text);
      throw error;
    });
  const command = (work: (tx: Tx) => Promise<unknown>, bounds?: CommandBounds) => {
    let runs = 0;
    return telling(
      "a command",
      db.command((tx) => {
        if (++runs > 1) again++;
        return work(order.watched(slowed(tx)));
      }, bounds),
    );
  };
  const sql = (text: string, values?: readonly unknown[]) => telling(text, db.sql(text, values));
  return new Proxy(db, {
    get: (target, key) => {
      if (key === "command") return command;
      if (key === "sql") return sql;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** As over a slow network: what a transaction has locked, it holds for a while. Statements are sent as they come. */
function slowed(tx: Tx): Tx {
  const sql = async (text: string, values?: readonly unknown[]) => {
    const rows = await tx.sql(text, values);
    if (pauses.happens(0.5)) await setTimeout(pauses.between(1, 4));
    return rows;
  };
  return Object.assign(Object.create(tx) as Tx, { sql });
}

test.each(seeds)(
  "seed %d: whatever overlaps, money, capacity and states stay sound, and no two commands wait for each other",
  async (seed) => {
    const world = new World({ db: watched(), seed, trace: new Trace(), processes: PROCESSES, together: TOGETHER });
    const fate = new Chance(seed);
    const insist = (wrong: readonly string[]) => expect(wrong, `seed ${seed} after ${world.operations}`).toEqual([]);
    let looked = 0;
    const look = async () => {
      if (world.operations - looked < LOOK_EVERY) return;
      looked = world.operations;
      insist(await brokenInvariants(db, [NOT_OVERSOLD]));
    };
    await live(world, fate, look);
    insist(await brokenInvariants(db));
    insist(await leftOver(db, world));
    expect({ surfaced, again }).toEqual({ surfaced: [], again: 0 });
    expect([...order.faults]).toEqual([]);
    expect(world.operations).toBeGreaterThan(2_000);
    expect(world.tenants.accepted).toBeGreaterThan(50);
  },
  120_000,
);

/** A busy time in which everything goes wrong, and then as long as everything needs to come to its end. */
async function live(world: World, fate: Chance, look: () => Promise<void>): Promise<void> {
  const mischief = new Mischief(world, fate, MISCHIEF_EVERY_MS);
  let busy = true;
  world.begin(() => mischief.restartProcesses());
  world.begin(() => mischief.run());
  world.begin(async () => {
    await world.tenants.open(TEAMS);
    await world.owners.open();
    while (busy) {
      await world.outside.sleep(fate.between(1, 2 * CROWD_EVERY_MS));
      for (const kind of SIMULATED_KINDS)
        world.market.change(kind.sku, kind.region, { ...kind, machines: MACHINES * kind.machines });
      for (let n = busy ? fate.between(1, CROWD) : 0; n > 0; n--) world.begin(() => world.tenants.act());
    }
  });
  await world.pass(BUSY_MS, look);
  busy = false;
  mischief.end();
  world.begin(() => world.tenants.makeRich());
  world.begin(() => world.tenants.cancelAll());
  world.begin(() => world.owners.askForTheRest());
  for (let minutes = 0; minutes < 60; minutes += 2) {
    await world.pass(world.passedMs + 2 * MINUTE_MS, look);
    if ((await unsettled(db)) === 0) break;
  }
  await world.pass(world.passedMs + 5 * MINUTE_MS, look);
}
