import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Database } from "../../../infra/db/database.ts";
import { OutboxRow } from "../../../infra/db/outbox.ts";
import { isWaitForOthersOver } from "../../../infra/db/unavailable.ts";
import type { FakeClock } from "../../../infra/kernel/clock.ts";
import type { Allowance } from "../../../infra/runner/protocol.ts";
import { computeSettings, insertPlaced, type Placed, TENANT } from "../../../tests/support/compute-fixtures.ts";
import type { TestDatabase } from "../../../tests/support/database.ts";
import { beginAnew, insertHosted, lifecycleDatabase } from "../../../tests/support/lifecycle-world.ts";
import { type FakeLifecycleDeps, lifecycleDeps, MiniatureHost } from "../../../tests/support/miniature-host.ts";
import { Account } from "../account/account.entity.ts";
import { computeEntities } from "../entities.ts";
import { Attempt, Placement } from "../placement/placement.entity.ts";
import { loseGeneration } from "./finish.commands.ts";
import { applyRecords } from "./record.commands.ts";
import { beat, openSession, resumeSession } from "./session.commands.ts";

let database: TestDatabase;
let psql: pg.Client;
let clock: FakeClock;
let deps: FakeLifecycleDeps;
let placed: Placed;
let host: MiniatureHost;

beforeAll(async () => {
  database = await lifecycleDatabase();
  psql = new pg.Client({ connectionString: database.url });
  await psql.connect();
}, 60_000);
afterAll(async () => {
  await psql.end();
  await database.close();
});
beforeEach(async () => {
  deps = await beginAnew(database.db);
  clock = deps.clock;
  ({ placed, host } = await insertHosted(deps));
  await host.apply(host.running());
});
afterEach(() => psql.query("rollback"));

const placement = async () => (await deps.db.row(Placement, "where t.id = $1", [placed.placementId]))!;
const held = async () => (await deps.db.row(Account, "where t.id = $1", [TENANT]))!.heldMicros;
const leaseLeftMs = async () => (await placement()).leaseExpiresAt!.getTime() - clock.now().getTime();

async function hold(table: "account" | "workload" | "placement", id: string): Promise<void> {
  await psql.query("begin");
  await psql.query(`select 1 from compute.${table} where id = $1 for update`, [id]);
}

async function placedOfAnotherTeam(): Promise<Placed> {
  const theirs = await insertPlaced(deps.db, clock.now());
  for (const table of ["workload", "stage", "placement", "attempt"]) {
    const key = table === "workload" ? "id" : "workload_id";
    await deps.db.sql(`update compute.${table} set tenant_id = 'team_other' where ${key} = $1`, [theirs.workloadId]);
  }
  return theirs;
}

/** How many sessions of the database wait for a lock; a transaction such as `psql`'s would see the same each time. */
async function lockWaits(): Promise<number> {
  const waiting = await deps.db.sql(
    "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return waiting.length;
}

async function heard(): Promise<Allowance> {
  const allowance = await beat(deps, host.session);
  if ("refused" in allowance) throw new Error(allowance.message);
  return allowance;
}

test("a host is heard for as long as its team's account is held, and what its time costs follows when it is free", async () => {
  const fundedMs = (await heard()).fundedRunMs!;
  const heldBefore = await held();
  await hold("account", TENANT);
  for (let round = 0; round < 4; round++) {
    await clock.advance(computeSettings.leaseMs - 1_000);
    expect((await heard()).fundedRunMs).toBe(fundedMs);
    expect(await leaseLeftMs()).toBe(computeSettings.leaseMs);
  }
  expect(await held()).toBe(heldBefore);
  await psql.query("rollback");
  await expect.poll(async () => (await heard()).fundedRunMs!, { timeout: 10_000 }).toBeGreaterThan(fundedMs);
  expect(await held()).toBe((await placement()).heldMicros);
}, 40_000);

test("a host is heard while its workload is held, but its records have to wait", async () => {
  await hold("workload", placed.workloadId);
  await clock.advance(computeSettings.leaseMs - 1_000);
  await heard();
  expect(await leaseLeftMs()).toBe(computeSettings.leaseMs);
  await expect(applyRecords(deps, host.session, [host.log(Buffer.from("a line\n"))])).rejects.toThrow();
  expect((await placement()).appliedSeq).toBe(1);
}, 30_000);

test("a host takes its session up again while its workload is held", async () => {
  const other = await insertPlaced(deps.db, clock.now());
  const opened = await openSession(deps, { ...other, protocol: 1 });
  if ("refused" in opened) throw new Error(opened.message);
  await hold("workload", other.workloadId);
  await clock.advance(computeSettings.leaseMs - 1_000);
  const resumed = await resumeSession(deps, { orderId: other.orderId, session: opened.token });
  expect(resumed).toMatchObject({ session: opened.session, ackSeq: 0, allowance: { want: "run" } });
  const renewed = await deps.db.row(Placement, "where t.id = $1", [other.placementId]);
  expect(renewed!.leaseExpiresAt!.getTime() - clock.now().getTime()).toBe(computeSettings.leaseMs);
}, 30_000);

test("a host opens its session while its team's account and its workload are held", async () => {
  const other = await insertPlaced(deps.db, clock.now());
  await hold("account", TENANT);
  await psql.query("select 1 from compute.workload for update");
  await clock.advance(10_000);
  const opened = await openSession(deps, { ...other, protocol: 1 });
  if ("refused" in opened) throw new Error(opened.message);
  expect(await beat(deps, opened.session)).toMatchObject({ want: "run" });
  const [attempt, renewed] = await Promise.all([
    deps.db.row(Attempt, "where t.id = $1", [other.orderId]),
    deps.db.row(Placement, "where t.id = $1", [other.placementId]),
  ]);
  expect(attempt).toMatchObject({ state: "booting", sessionHash: opened.session.sessionHash });
  expect(renewed!.leaseExpiresAt).toEqual(new Date(clock.now().getTime() + computeSettings.leaseMs));
}, 30_000);

test("an exchange that a later one overtook before it was answered does not take the session back", async () => {
  const other = await insertPlaced(deps.db, clock.now());
  const { db } = deps;
  let later: Promise<MiniatureHost> | undefined;
  const overtaken = {
    sql: db.sql.bind(db),
    command: db.command.bind(db),
    row: async (...asked: Parameters<typeof db.row>) => {
      later ??= MiniatureHost.open(deps, other);
      await later;
      return db.row(...asked);
    },
  } as unknown as Database;
  expect(await openSession({ ...deps, db: overtaken }, { ...other, protocol: 1 })).toMatchObject({ refused: "retry" });
  expect(await beat(deps, (await later!).session)).toMatchObject({ want: "run" });
}, 30_000);

test("hosts that open their sessions while a team's placements are held leave other teams' hosts their connections", async () => {
  const poolSize = 4;
  const mine = await Promise.all(Array.from({ length: 3 * poolSize }, () => insertPlaced(deps.db, clock.now())));
  const theirs = await placedOfAnotherTeam();
  const db = await Database.open({ url: database.url, entities: [...computeEntities, OutboxRow], poolSize });
  const intake = lifecycleDeps(db, clock);
  try {
    await hold("placement", placed.placementId);
    await psql.query("select 1 from compute.placement where tenant_id = $1 for update", [TENANT]);
    let mineEnded = 0;
    const opening = mine.map((order) =>
      openSession(intake, { ...order, protocol: 1 })
        .catch((error: unknown) => error)
        .finally(() => mineEnded++),
    );
    await expect.poll(lockWaits, { timeout: 10_000 }).toBeGreaterThan(0);
    expect(await openSession(intake, { ...theirs, protocol: 1 })).toMatchObject({ allowance: { want: "run" } });
    expect(mineEnded).toBe(0);
    for (const end of await Promise.all(opening)) expect(isWaitForOthersOver(end)).toBe(true);
    await psql.query("rollback");
    for (const order of mine)
      expect(await openSession(intake, { ...order, protocol: 1 })).toMatchObject({ allowance: { want: "run" } });
  } finally {
    await psql.query("rollback");
    await db.close();
  }
}, 40_000);

test("who was fenced or replaced is told so while rows of its team are held", async () => {
  await database.db.command((tx) =>
    loseGeneration(tx, { placementId: placed.placementId, trigger: "host_lost", now: clock.now() }),
  );
  const other = await insertPlaced(deps.db, clock.now());
  const replaced = await MiniatureHost.open(deps, other);
  const latest = await MiniatureHost.open(deps, other);
  await hold("account", TENANT);
  await psql.query("select 1 from compute.workload for update");
  expect(await beat(deps, host.session)).toMatchObject({ refused: "fenced" });
  expect(await beat(deps, replaced.session)).toMatchObject({ refused: "fenced" });
  expect(await beat(deps, latest.session)).toMatchObject({ want: "run" });
}, 30_000);

test("while its placement itself is held a host is neither heard nor turned away", async () => {
  await hold("placement", placed.placementId);
  const end = await beat(deps, host.session).catch((error: unknown) => error);
  expect(isWaitForOthersOver(end)).toBe(true);
}, 30_000);
