import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Driver } from "../../infra/drivers/driver.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { DONE } from "../../infra/queue/implement-job.ts";
import { openAccount } from "../../subgraphs/compute/account/account.commands.ts";
import { insertPlaced, insertWorkload, TENANT } from "../../tests/support/compute-fixtures.ts";
import { jobContext } from "../../tests/support/jobs.ts";
import { CPU_KIND } from "../../tests/support/market-kinds.ts";
import { inUse, type MarketWorld, marketWorld, reconcileOnce, withCalls } from "../../tests/support/market-world.ts";
import { loseExpiredLeases } from "../reconcile/expired-leases.ts";
import { createPlacer, placeStageJob } from "./place-stage.ts";

const OTHER = "team_other";
let world: MarketWorld;
let psql: pg.Client;

beforeEach(async () => {
  const cheap = { ...CPU_KIND, machines: 4, bootMs: 3_000_000 };
  const dear = { ...cheap, sku: "sim-cpu-dear", rateMicrosPerHour: 2n * cheap.rateMicrosPerHour };
  world = await marketWorld({ kinds: [cheap, dear] });
  const account = { teamId: OTHER, creditMicros: 100_000_000n, paymentMethod: true, concurrentRunsLimit: 100 };
  await world.db.command((tx) => openAccount(tx, account, world.clock.now()));
  psql = new pg.Client({ connectionString: world.database.url });
  await psql.connect();
}, 60_000);
afterEach(async () => {
  await psql.end();
  await world.close();
});

const place = () => world.placer.placeBatch({ signal: new AbortController().signal });

async function hold(teamId: string): Promise<() => Promise<unknown>> {
  await psql.query("begin");
  await psql.query("select 1 from compute.account where id = $1 for update", [teamId]);
  return () => psql.query("rollback");
}

async function submit(teamId: string): Promise<void> {
  const { workloadId } = await insertWorkload(world.db, world.clock.now());
  if (teamId === TENANT) return;
  await world.db.sql("update compute.workload set tenant_id = $2 where id = $1", [workloadId, teamId]);
  await world.db.sql("update compute.stage set tenant_id = $2 where workload_id = $1", [workloadId, teamId]);
}

const cheapest = async () => {
  const offers = "select capacity_id from compute.offer where sku = $1";
  return (await world.db.sql<{ capacity_id: string }>(offers, [CPU_KIND.sku]))[0]!.capacity_id;
};

const capacities = async () => {
  const all = await world.db.sql<{ id: string }>("select id from compute.capacity order by id");
  return all.map(({ id }) => id);
};

/** The reasons for waiting that events tell, each with the one that its workload says now. */
const told = () =>
  world.db.sql(
    `select e.payload->>'reason' as reason, w.waiting_reason as waiting
     from compute.workload_event e join compute.workload w on w.id = e.workload_id
     where e.type = 'workload.waiting' order by e.id`,
  );

const attempts = async () => {
  const all = await world.db.sql<{ tenant_id: string; state: string }>("select tenant_id, state from compute.attempt");
  return Object.fromEntries(all.map(({ tenant_id, state }) => [tenant_id, state]));
};

const stages = async () =>
  Object.fromEntries(
    (
      await world.db.sql<{ tenant_id: string; status: string }>(
        "select tenant_id, status from compute.stage order by tenant_id, id",
      )
    ).map(({ tenant_id, status }) => [tenant_id, status]),
  );

test("a team whose account is held waits for its placement by itself, and says nothing untrue of why", async () => {
  await submit(TENANT);
  await submit(OTHER);
  const release = await hold(TENANT);
  expect(await place()).toMatchObject({ placed: 1 });
  expect(await stages()).toEqual({ [TENANT]: "placing", [OTHER]: "starting" });
  expect((await inUse(world)).slots).toBe(1);
  expect(await place()).toMatchObject({ looked: 0 });
  await world.clock.advance(LIMITS.busyStageMs);
  expect(await place()).toMatchObject({ looked: 1, placed: 0 });
  await world.clock.advance(LIMITS.busyStageMs); // by now it is known for one that is held
  expect(await place()).toMatchObject({ looked: 0 });
  await release();
  await world.clock.advance(LIMITS.heldStageMs);
  expect(await place()).toMatchObject({ placed: 1 });
  expect(await stages()).toEqual({ [TENANT]: "starting", [OTHER]: "starting" });
  expect(await told()).toEqual([]);
}, 60_000);

test("an account that is only busy, each time with something else, is asked for again soon", async () => {
  await submit(TENANT);
  for (let n = 0; n < 3; n++) {
    const release = await hold(TENANT);
    expect(await place()).toMatchObject({ looked: 1, placed: 0 });
    await release();
    await world.clock.advance(LIMITS.busyStageMs);
  }
  expect(await place()).toMatchObject({ placed: 1 });
}, 60_000);

test("the ring of a stage whose account is busy is heard again, and not while the account is held", async () => {
  await submit(TENANT);
  const [stage] = await world.db.sql<{ id: string }>("select id from compute.stage");
  const ring = () => placeStageJob(world.deps, world.placer).body({ stageRunId: stage!.id }, jobContext(world));
  const release = await hold(TENANT);
  const soon = new Date(world.clock.now().getTime() + LIMITS.busyStageMs);
  expect(await ring()).toMatchObject({ outcome: "later", at: soon });
  await world.clock.advance(LIMITS.busyStageMs);
  expect(await ring()).toEqual(DONE);
  await release();
  await world.clock.advance(LIMITS.heldStageMs);
  expect(await ring()).toEqual(DONE);
  expect(await stages()).toEqual({ [TENANT]: "starting" });
}, 60_000);

test("a stage that only a held capacity keeps waiting does not say that there is none", async () => {
  const [full, held] = await capacities();
  await world.db.sql("update compute.capacity set slots_used = slots where id = $1", [full]);
  await submit(OTHER);
  await psql.query("begin");
  await psql.query("select 1 from compute.capacity for update");
  expect(await place()).toMatchObject({ looked: 1, placed: 0 });
  expect(await told()).toEqual([]);
  await psql.query("rollback");
  await world.clock.advance(LIMITS.busyStageMs);
  await world.db.sql("update compute.capacity set slots_used = slots where id = $1", [held]);
  expect(await place()).toMatchObject({ looked: 1, placed: 0 });
  expect(await told()).toEqual([{ reason: "no_capacity", waiting: "no_capacity" }]);

  await world.db.sql("update compute.capacity set slots_used = 0 where id = $1", [held]);
  await psql.query("begin");
  await psql.query("select 1 from compute.capacity where id = $1 for update", [held]);
  await world.clock.advance(2_000);
  expect(await place()).toMatchObject({ looked: 1, placed: 0 });
  expect(await told()).toEqual([{ reason: "no_capacity", waiting: "no_capacity" }]);
  await psql.query("rollback");
  await world.clock.advance(LIMITS.busyStageMs);
  expect(await place()).toMatchObject({ placed: 1 });
}, 60_000);

test("a team whose lost generation somebody holds keeps no other team's stage from its placement", async () => {
  const mine = await insertPlaced(world.db, world.clock.now());
  await world.db.sql("update compute.stage set status = 'placing', next_try_at = $1", [world.clock.now()]);
  await submit(OTHER);
  await psql.query("begin");
  await psql.query("select 1 from compute.placement where id = $1 for update", [mine.placementId]);
  expect(await place()).toMatchObject({ placed: 1 });
  expect(await stages()).toEqual({ [TENANT]: "placing", [OTHER]: "starting" });
  expect(await place()).toMatchObject({ looked: 0 });
  await psql.query("rollback");
  await world.clock.advance(LIMITS.heldStageMs);
  expect(await place()).toMatchObject({ placed: 1 });
  expect(await told()).toEqual([]);
}, 60_000);

test("an order that its supplier refuses while its team is held fails no other team's, and is found again", async () => {
  await submit(TENANT);
  await submit(OTHER);
  let mine = "";
  const launch: Driver["launch"] = async (order) => {
    const [attempt] = await world.db.sql<{ id: string }>(
      "select id from compute.attempt where id = $1 and tenant_id = $2",
      [order.orderId, TENANT],
    );
    if (!attempt) return world.driver.launch(order);
    mine = attempt.id;
    await hold(TENANT);
    return { outcome: "refused", reason: "no_capacity", message: "taken" };
  };
  const drivers = new Map([[world.driver.supplier, withCalls(world.driver, { launch })]]);
  const placer = createPlacer({ ...world.deps, drivers });
  expect(await placer.placeBatch({ signal: new AbortController().signal })).toMatchObject({ placed: 2 });
  expect(await attempts()).toEqual({ [TENANT]: "launching", [OTHER]: "booting" });
  await psql.query("rollback");
  await world.clock.advance(LIMITS.launchTimeoutMs + LIMITS.attemptCheckMs);
  await reconcileOnce(world);
  expect(mine).not.toBe("");
  expect(await attempts()).toEqual({ [TENANT]: "booting", [OTHER]: "booting" });
}, 60_000);

test("a capacity that somebody holds is passed over, and what fits elsewhere is placed there", async () => {
  await submit(OTHER);
  expect(await capacities()).toHaveLength(2);
  await psql.query("begin");
  await psql.query("select 1 from compute.capacity where id = $1 for update", [await cheapest()]);
  expect(await place()).toMatchObject({ placed: 1 });
  expect(await stages()).toEqual({ [OTHER]: "starting" });
  await psql.query("rollback");
}, 60_000);

test("hosts that are lost while an account is held cost other teams' lost hosts one bounded wait", async () => {
  for (let n = 0; n < 3; n++) await submit(TENANT);
  await submit(OTHER);
  await place();
  await world.db.sql("update compute.placement set lease_expires_at = $1", [world.clock.now()]);
  await world.db.sql("update compute.placement set lease_expires_at = $1 where tenant_id = $2", [
    new Date(world.clock.now().getTime() - 1_000),
    TENANT,
  ]);
  await world.clock.advance(1_000);
  const { rows } = await psql.query("select id from compute.workload where tenant_id = $1", [TENANT]);
  await psql.query("begin");
  await psql.query("select 1 from compute.workload where id = any($1) for update", [rows.map(({ id }) => id)]);
  await expect(loseExpiredLeases(world.db, world.clock.now())).rejects.toMatchObject({ steps: 3, teamId: TENANT });
  const lost = () =>
    world.db.sql<{ tenant_id: string }>("select tenant_id from compute.placement where state = 'ended' order by 1");
  expect(await lost()).toEqual([{ tenant_id: OTHER }]);
  await psql.query("rollback");
  await new Promise((resolve) => setTimeout(resolve, LIMITS.heldTeamMs));
  await loseExpiredLeases(world.db, world.clock.now());
  expect(await lost()).toHaveLength(4);
}, 60_000);

test("a team that has lost more hosts than a round looks at keeps no other team's lost host waiting", async () => {
  const now = world.clock.now();
  for (let n = 0; n < 101; n++) await insertPlaced(world.db, now);
  const other = await insertPlaced(world.db, now);
  for (const table of ["workload", "stage", "placement", "attempt"]) {
    const key = table === "workload" ? "id" : "workload_id";
    await world.db.sql(`update compute.${table} set tenant_id = $2 where ${key} = $1`, [other.workloadId, OTHER]);
  }
  await world.db.sql("update compute.placement set lease_expires_at = $1", [new Date(now.getTime() - 2_000)]);
  await world.db.sql("update compute.placement set lease_expires_at = $1 where tenant_id = $2", [
    new Date(now.getTime() - 1_000),
    OTHER,
  ]);
  await psql.query("begin");
  await psql.query("select 1 from compute.workload where tenant_id = $1 for update", [TENANT]);
  await expect(loseExpiredLeases(world.db, now)).rejects.toMatchObject({ steps: 99, teamId: TENANT });
  const ended = await world.db.sql("select tenant_id from compute.placement where state = 'ended'");
  expect(ended).toEqual([{ tenant_id: OTHER }]);
  await psql.query("rollback");
}, 60_000);
