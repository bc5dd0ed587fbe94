import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { IdempotencyKey } from "../../../infra/db/idempotency.ts";
import { OutboxRow } from "../../../infra/db/outbox.ts";
import { isWaitForOthersOver } from "../../../infra/db/unavailable.ts";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import type { Allowance } from "../../../infra/runner/protocol.ts";
import {
  computeSettings,
  insertAccount,
  insertPlaced,
  type Placed,
  TENANT,
} from "../../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { lifecycleDeps, MiniatureHost } from "../../../tests/support/miniature-host.ts";
import { Account } from "../account/account.entity.ts";
import { computeEntities } from "../entities.ts";
import { Placement } from "../placement/placement.entity.ts";
import { loseGeneration } from "./finish.commands.ts";
import type { LifecycleDeps } from "./lifecycle-deps.ts";
import { applyRecords } from "./record.commands.ts";
import { beat, openSession, resumeSession } from "./session.commands.ts";

let database: TestDatabase;
let psql: pg.Client;
let clock: FakeClock;
let deps: LifecycleDeps;
let placed: Placed;
let host: MiniatureHost;

beforeAll(async () => {
  database = await testDatabase([...computeEntities, OutboxRow, IdempotencyKey]);
  psql = new pg.Client({ connectionString: database.url });
  await psql.connect();
}, 60_000);
afterAll(async () => {
  await psql.end();
  await database.close();
});
beforeEach(async () => {
  await database.db.sql(
    "truncate compute.account, compute.workload, compute.stage, compute.placement, compute.attempt, compute.workload_event, infra.outbox",
  );
  clock = new FakeClock("2026-03-01T00:00:00Z");
  deps = lifecycleDeps(database.db, clock);
  await insertAccount(deps.db, clock.now());
  placed = await insertPlaced(deps.db, clock.now());
  host = await MiniatureHost.open(deps, placed);
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
