import { graphql } from "graphql";
import { expect, test } from "vitest";
import type { Database } from "../../infra/db/database.ts";
import { requestLoaders } from "../../infra/graphql/loaders.ts";
import { SCOPES, type Scope } from "../../infra/kernel/actor.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { teamKey } from "../../tests/support/actors.ts";
import { buildRlSubgraph } from "./index.ts";
import type { RlContext } from "./rl-context.ts";

const { schema } = buildRlSubgraph();

/** A team that has the workload wl_1 and no other. */
function context(scopes: readonly Scope[] = SCOPES): RlContext {
  return {
    actor: teamKey("team_1", scopes),
    requestId: "req_1",
    db: null as unknown as Database, // nothing here has a table yet
    clock: new FakeClock(),
    loader: requestLoaders(),
    rl: { workloads: { exists: async (_, tenantId, id) => tenantId === "team_1" && id === "wl_1" } },
  };
}

const ask = (source: string, variableValues: Record<string, unknown> = {}, scopes?: readonly Scope[]) =>
  graphql({ schema, source, variableValues, contextValue: context(scopes) });

const EVENTS = `query ($of: [_Any!]!, $after: String, $first: Int) {
  _entities(representations: $of) {
    ... on Workload {
      rlEvents(after: $after, first: $first) { schemaVersion events { id } nextCursor hasMore droppedEvents truncated }
    }
  }
}`;

/** The page of a workload's events, or the code of its refusal. */
async function events(input: { id: string; after?: string; first?: number }, scopes?: readonly Scope[]) {
  const { id, ...rest } = input;
  const answer = await ask(EVENTS, { of: [{ __typename: "Workload", id }], ...rest }, scopes);
  return answer.errors?.[0]?.extensions.code ?? (answer.data as { _entities: unknown[] })._entities[0];
}

test("a workload without recorded events has an empty page that can be asked for again", async () => {
  const empty = {
    rlEvents: { schemaVersion: 1, events: [], nextCursor: "", hasMore: false, droppedEvents: 0, truncated: false },
  };
  expect(await events({ id: "wl_1" })).toEqual(empty);
  expect(await events({ id: "wl_1", after: "", first: LIMITS.rlEventPageMax })).toEqual(empty);
});

test("a foreign workload, a made-up cursor and a page size out of range are refused by name", async () => {
  expect(await events({ id: "wl_2" })).toBe("not_found");
  expect(await events({ id: "wl_1", after: "42" })).toBe("invalid_cursor");
  for (const first of [0, -1, LIMITS.rlEventPageMax + 1])
    expect(await events({ id: "wl_1", first })).toBe("invalid_limit");
  expect(await events({ id: "wl_1" }, ["data:read"])).toBe("insufficient_scope");
});

test("the one recipe is listed as unavailable, with the reason and every documented default and limit", async () => {
  const answer = await ask(`{ rlRecipes { nodes {
    id version environmentId name model modelRevision taskset modes available unavailableReason
    defaults { evaluationTasks trainingSteps maxCostUsd seed }
    limits { evaluationTasksMin evaluationTasksMax trainingStepsMin trainingStepsMax }
    outputs { name description }
  } pageInfo { hasNextPage endCursor } } }`);
  const { nodes, pageInfo } = (
    answer.data as { rlRecipes: { nodes: Record<string, unknown>[]; pageInfo: { endCursor: string } } }
  ).rlRecipes;
  expect(nodes).toHaveLength(1);
  expect(nodes[0]).toMatchObject({
    id: "reasoning-gym-leg-counting",
    version: "1.0.0",
    modes: ["evaluate", "train"],
    available: false,
    unavailableReason: expect.stringMatching(/./),
    modelRevision: expect.stringMatching(/^[0-9a-f]{40}$/),
    defaults: { evaluationTasks: 16, trainingSteps: 20, maxCostUsd: 5, seed: 42 },
    limits: { evaluationTasksMin: 4, evaluationTasksMax: 64, trainingStepsMin: 1, trainingStepsMax: 50 },
  });
  for (const key of ["name", "model", "taskset", "environmentId"]) expect(nodes[0]![key]).not.toBe("");
  const rest = await ask("query ($after: String) { rlRecipes(after: $after) { nodes { id } } }", {
    after: pageInfo.endCursor,
  });
  expect(rest.data).toEqual({ rlRecipes: { nodes: [] } });
});
