import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { parse } from "graphql";
import { afterAll, beforeAll, expect, test } from "vitest";
import { remote } from "../../gateway/executors/http.ts";
import { createGateway, type Gateway } from "../../gateway/gateway.ts";
import { Json, SafeInt, Usd } from "../../infra/graphql/scalars.ts";
import { SUBGRAPH_WIRE, subgraphPath } from "../../infra/graphql/subgraph-wire.ts";
import { signActor } from "../../infra/kernel/actor.ts";
import { systemClock } from "../../infra/kernel/clock.ts";
import { Drain } from "../../infra/telemetry/drain.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { buildSubgraph, contextFor, SUBGRAPH_NAMES } from "../../roles/graph.ts";
import type { Parts } from "../../roles/parts.ts";
import { MEMBER } from "../support/actors.ts";
import { insertAccount } from "../support/compute-fixtures.ts";
import { type ComputeGraph, computeGraph } from "../support/compute-graph.ts";
import { createSubgraphServer } from "../support/subgraph-server.ts";

const signingKey = randomBytes(32);
const log = createLogger({ level: "silent", role: "test" });
const urls = new Map<string, string>();
const servers: FastifyInstance[] = [];
let compute: ComputeGraph;
let gateway: Gateway;

beforeAll(async () => {
  compute = await computeGraph();
  await insertAccount(compute.db, compute.clock.now());
  const { db, clock, secretBox, settings, deps } = compute;
  // Of all parts of a platform, these are used; nothing is fetched here.
  const parts = {
    ...{ db, clock, secretBox, wakeups: deps.wakeups, logger: log, drain: new Drain(log) },
    objects: { assets: compute.objects, results: compute.objects },
    settings: {
      ...settings,
      dataDir: "",
      githubApiUrl: "https://github.invalid",
      huggingFaceUrl: "https://hf.invalid",
    },
  } as unknown as Parts;
  const context = contextFor(parts, deps);
  for (const name of SUBGRAPH_NAMES) {
    const { schema } = buildSubgraph(name);
    const app = await createSubgraphServer({ name, schema, contextFor: context, signingKey, clock: systemClock, log });
    await app.listen({ port: 0, host: "127.0.0.1" });
    servers.push(app);
    urls.set(name, `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`);
  }
  gateway = await createGateway({
    supergraphSdl: readFileSync(projectFile("schema", "supergraph.graphql"), "utf8"),
    executors: [...urls].map(([name, url]) => remote({ name, url, signingKey, clock: systemClock })),
    resolveActor: async () => null,
    log,
    scalars: [Usd, SafeInt, Json],
  });
});
afterAll(async () => {
  await gateway?.close();
  for (const server of servers) await server.close();
  await compute?.close();
});

async function ask(name: string, query: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${urls.get(name)}${subgraphPath(name)}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as {
    data?: { _service: { sdl: string } };
    errors?: { extensions: { code: string } }[];
  };
}

test.each(SUBGRAPH_NAMES)(
  "the subgraph %s answers alone to callers that a gateway has signed, and to nobody else",
  async (name) => {
    const signed = { [SUBGRAPH_WIRE.actor]: signActor(MEMBER, signingKey, systemClock.now()) };
    const { data } = await ask(name, "{ _service { sdl } }", signed);
    expect(data?._service.sdl).toContain("@key");
    const forged = { [SUBGRAPH_WIRE.actor]: signActor(MEMBER, randomBytes(32), systemClock.now()) };
    for (const headers of [{}, forged]) {
      const { errors } = await ask(name, "{ _service { sdl } }", headers);
      expect(errors?.[0]?.extensions.code).toBe("unauthorized");
    }
  },
);

test("one query over all of them, each behind HTTP, reads what a mutation through them made", async () => {
  const run = async (document: string, variables: Record<string, unknown> = {}) => {
    const result = await gateway.execute({
      document: parse(document),
      variables,
      actor: MEMBER,
      requestId: "req_alone",
    });
    expect((result.errors ?? []).map((e) => [e.message, e.path, e.extensions.code])).toEqual([]);
    return result.data as Record<string, Record<string, Record<string, unknown>>>;
  };
  const made = await run(
    `mutation ($workload: CreateWorkloadInput!) {
      createWorkload(input: $workload) { workload { id status } }
      createPool(input: { name: "racks" }) { pool { id } }
      createWorkspace(input: { name: "notes", sizeGb: 2 }) { workspace { id } }
      putSecret(input: { name: "TOKEN", value: "s3cret-value" }) { secret { id } }
    }`,
    { workload: { idempotencyKey: "alone-1", workload: { source: { command: ["true"] } } } },
  );
  const story = await run(
    `query ($workload: ID!, $pool: ID!) {
      workload(id: $workload) { status events { type } rlEvents { hasMore } }
      node(id: $pool) { __typename ... on Pool { name } }
      secrets { nodes { name } }
      workspaces { nodes { name } }
    }`,
    { workload: made.createWorkload?.workload?.id, pool: made.createPool?.pool?.id },
  );
  expect(story).toEqual({
    workload: { status: "accepted", events: [{ type: "workload.accepted" }], rlEvents: { hasMore: false } },
    node: { __typename: "Pool", name: "racks" },
    secrets: { nodes: [{ name: "TOKEN" }] },
    workspaces: { nodes: [{ name: "notes" }] },
  });
});
