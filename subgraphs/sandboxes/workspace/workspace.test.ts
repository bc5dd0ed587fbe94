import { graphql } from "graphql";
import { afterAll, beforeAll, expect, test } from "vitest";
import { databaseOf } from "../../../infra/graphql/context.ts";
import { requestLoaders } from "../../../infra/graphql/loaders.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { teamKey } from "../../../tests/support/actors.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { sandboxesEntities } from "../entities.ts";
import { buildSandboxesSubgraph } from "../index.ts";
import { createWorkspace, listWorkspaces } from "./workspace.commands.ts";

let database: TestDatabase;
const clock = new FakeClock("2026-03-01T12:00:00Z");
const { schema } = buildSandboxesSubgraph();

beforeAll(async () => {
  database = await testDatabase(sandboxesEntities);
});
afterAll(() => database?.close());

const create = (actor: Actor, name: string, sizeGb: number) =>
  createWorkspace(database.db, actor, { name, sizeGb }, clock.now());

test("the same name and size answers the same workspace, however many ask at once", async () => {
  const actor = teamKey("team_same");
  const all = await Promise.all(Array.from({ length: 10 }, () => create(actor, "data", 0.1)));
  expect(new Set(all.map((a) => a.workspace.id)).size).toBe(1);
  expect(all.filter((a) => !a.replayed)).toHaveLength(1);
  expect(await listWorkspaces(database.db, actor.tenantId, null, 10)).toMatchObject([
    {
      name: "data",
      sizeGb: 0.1,
      holderId: null,
      savedAt: null,
      storedBytes: null,
      lastError: null,
      savingForTermination: false,
      billingStatus: "disabled_no_approved_storage_rate",
    },
  ]);
});

test("another size under the same name is refused and changes nothing", async () => {
  const actor = teamKey("team_other");
  await create(actor, "data", 1);
  await expect(create(actor, "data", 2)).rejects.toMatchObject({
    kind: { code: "workspace_exists", status: 409 },
    detail: { field: "/size_gb" },
  });
  expect((await create(actor, "data", 1)).replayed).toBe(true);
  expect((await create(teamKey("team_else"), "data", 2)).replayed).toBe(false);
});

test.for<[string, number, string, string]>([
  ["", 1, "invalid_name", "/name"],
  ["a b", 1, "invalid_name", "/name"],
  ["../etc", 1, "invalid_name", "/name"],
  ["a\n", 1, "invalid_name", "/name"],
  ["a".repeat(129), 1, "invalid_name", "/name"],
  ["a", 0, "invalid_workspace_size", "/size_gb"],
  ["a", -1, "invalid_workspace_size", "/size_gb"],
  ["a", Number.NaN, "invalid_workspace_size", "/size_gb"],
  ["a", Number.POSITIVE_INFINITY, "invalid_workspace_size", "/size_gb"],
  ["a", LIMITS.workspaceSizeGb + 0.001, "workspace_too_large", "/size_gb"],
])("name %j with %d GiB is refused as %s", async ([name, sizeGb, code, field]) => {
  await expect(create(teamKey("team_bad"), name, sizeGb)).rejects.toMatchObject({
    kind: { code, status: 400 },
    detail: { field },
  });
});

test("a team has room for a limited number, and an existing one needs no room", async () => {
  const actor = teamKey("team_full");
  for (let i = 0; i < LIMITS.workspacesPerTeam - 1; i++) await create(actor, `w${i}`, 1);
  const results = await Promise.allSettled([create(actor, "x", 1), create(actor, "y", 1)]);
  expect(results.filter((r) => r.status === "fulfilled")).toHaveLength(1);
  await expect(create(actor, "z", 1)).rejects.toMatchObject({ kind: { code: "workspace_limit", status: 409 } });
  expect((await create(actor, "w0", 1)).replayed).toBe(true);
});

test("the graph makes and lists a team's own workspaces", async () => {
  const ask = (actor: Actor, source: string) =>
    graphql({
      schema,
      source,
      contextValue: { actor, requestId: "req_1", db: databaseOf(database.db, actor), clock, loader: requestLoaders() },
    });
  const mutation = `mutation { createWorkspace(input: { name: "w", sizeGb: 0.5 }) { replayed workspace { name sizeGb holderId } } }`;
  expect((await ask(teamKey("team_graph"), mutation)).data).toEqual({
    createWorkspace: { replayed: false, workspace: { name: "w", sizeGb: 0.5, holderId: null } },
  });
  expect((await ask(teamKey("team_graph"), mutation)).data).toMatchObject({ createWorkspace: { replayed: true } });
  expect((await ask(teamKey("team_graph"), "{ workspaces(first: 100) { nodes { name } } }")).data).toEqual({
    workspaces: { nodes: [{ name: "w" }] },
  });
  expect((await ask(teamKey("team_nobody"), "{ workspaces { nodes { name } } }")).data).toEqual({
    workspaces: { nodes: [] },
  });
});
