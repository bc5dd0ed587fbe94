import { graphql } from "graphql";
import { afterAll, beforeAll, expect, test } from "vitest";
import { databaseOf } from "../../../infra/graphql/context.ts";
import { requestLoaders } from "../../../infra/graphql/loaders.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { teamKey } from "../../../tests/support/actors.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { poolsEntities } from "../entities.ts";
import { buildPoolsSubgraph } from "../index.ts";
import { createPool, listPools, renamePool } from "./pool.commands.ts";
import { pools } from "./pool.port.ts";

let database: TestDatabase;
const clock = new FakeClock("2026-03-01T12:00:00Z");
const { schema } = buildPoolsSubgraph();

beforeAll(async () => {
  database = await testDatabase(poolsEntities);
});
afterAll(() => database?.close());

const create = (actor: Actor, name: string) => createPool(database.db, actor, { name }, clock.now());
const ask = (actor: Actor, source: string, variableValues: Record<string, unknown> = {}) =>
  graphql({
    schema,
    source,
    variableValues,
    contextValue: { actor, requestId: "req_1", db: databaseOf(database.db, actor), clock, loader: requestLoaders() },
  });

test("a new pool measures only: nothing is charged, and nothing goes elsewhere", async () => {
  const actor = teamKey("team_new");
  const pool = await create(actor, "  Rack 7 ");
  expect(pool.id).toMatch(/^pool_/);
  expect(await listPools(database.db, actor.tenantId, null, 10)).toMatchObject([
    {
      id: pool.id,
      name: "Rack 7",
      kind: "hosts",
      state: "active",
      waitPolicy: "never",
      burstApproval: "always",
      burstTimeoutBehaviour: "keep_waiting",
      predictEnabled: false,
      routeEnabled: false,
      sandboxCapable: false,
      waitAlpha: 0.1,
      waitingBudgetPct: 0,
      burstThresholdMicros: 0,
      platformRateMicros: 0,
      ownedCostMicrosPerHour: 0,
      createdAt: clock.now(),
      updatedAt: clock.now(),
    },
  ]);
});

test("sent twice, a pool is made twice", async () => {
  const actor = teamKey("team_twice");
  const [one, two] = [await create(actor, "same"), await create(actor, "same")];
  expect(one.id).not.toBe(two.id);
});

test.for(["", "   ", "a\nb", "é".repeat(101), ` ${"a".repeat(200)}`, "\ud800"])(
  "the name %j is refused",
  async (name) => {
    const refusal = { kind: { code: "invalid_pool_name", status: 400 }, detail: { field: "/name" } };
    await expect(create(teamKey("team_names"), name)).rejects.toMatchObject(refusal);
    expect((await create(teamKey("team_names_ok"), "é".repeat(100))).name).toHaveLength(100);
  },
);

test("a pool is renamed, and another team's is not there", async () => {
  const [owner, stranger] = [teamKey("team_owner"), teamKey("team_stranger")];
  const pool = await create(owner, "before");
  await clock.advance(1000);
  const renamed = await renamePool(database.db, owner, { id: pool.id, name: "after" }, clock.now());
  expect(renamed).toMatchObject({ name: "after", updatedAt: clock.now() });
  for (const id of [pool.id, "pool_0", "wl_1", "pool_\0"])
    await expect(renamePool(database.db, stranger, { id, name: "x" }, clock.now())).rejects.toMatchObject({
      kind: { code: "not_found" },
    });
  expect(await pools.exists(database.db, owner.tenantId, pool.id)).toBe(true);
  expect(await pools.exists(database.db, stranger.tenantId, pool.id)).toBe(false);
});

test("a team has room for a limited number of pools, also for requests at once", async () => {
  const actor = teamKey("team_full");
  await database.db.sql(
    `insert into pools.pool select 'pool_fill' || n, $1, 'fill', kind, state, wait_policy, burst_approval, burst_timeout_behaviour,
       predict_enabled, route_enabled, sandbox_capable, wait_alpha, waiting_budget_pct, burst_threshold_micros,
       platform_rate_micros, owned_cost_micros_per_hour, created_at, updated_at
       from (select * from pools.pool limit 1) p, generate_series(1, $2::int) n`,
    [actor.tenantId, LIMITS.poolsPerTeam - 1],
  );
  const results = await Promise.allSettled([create(actor, "a"), create(actor, "b"), create(actor, "c")]);
  expect(results.filter((r) => r.status === "fulfilled")).toHaveLength(1);
  await expect(create(actor, "d")).rejects.toMatchObject({ kind: { code: "pool_limit", status: 409 } });
});

test("the graph makes, renames, reads and pages pools", async () => {
  const actor = teamKey("team_graph");
  const made = await ask(
    actor,
    `mutation { createPool(input: { name: "one" }) { pool { id name burstThresholdMicros } } }`,
  );
  expect(made.errors).toBeUndefined();
  const id = (made.data as { createPool: { pool: { id: string } } }).createPool.pool.id;
  await clock.advance(5);
  await create(actor, "two");
  await ask(actor, "mutation ($input: RenamePoolInput!) { renamePool(input: $input) { pool { name } } }", {
    input: { id, name: "uno" },
  });
  const first = await ask(actor, "{ pools(first: 1) { nodes { name } pageInfo { hasNextPage endCursor } } }");
  const page = (first.data as { pools: { nodes: unknown[]; pageInfo: { hasNextPage: boolean; endCursor: string } } })
    .pools;
  expect(page).toMatchObject({ nodes: [{ name: "two" }], pageInfo: { hasNextPage: true } });
  const next = await ask(
    actor,
    "query ($after: String) { pools(after: $after) { nodes { name } pageInfo { hasNextPage } } }",
    {
      after: page.pageInfo.endCursor,
    },
  );
  expect(next.data).toEqual({ pools: { nodes: [{ name: "uno" }], pageInfo: { hasNextPage: false } } });
});

test("the graph refuses what is foreign, out of scope or anonymous, by name", async () => {
  const pool = await create(teamKey("team_a"), "a");
  const source = "query ($id: ID!) { pool(id: $id) { name } }";
  const code = async (actor: Actor | null) =>
    (await ask(actor as Actor, source, { id: pool.id })).errors?.map((e) => e.extensions.code);
  expect(await code(teamKey("team_b"))).toEqual(["not_found"]);
  expect(await code(teamKey("team_a", ["data:read"]))).toEqual(["insufficient_scope"]);
  expect(await code(null)).toEqual(["unauthorized"]);
  expect(await code(teamKey("team_a", ["pools:read"]))).toBeUndefined();
});
