import { buildSubgraphSchema } from "@apollo/subgraph";
import { composeServices } from "@theguild/federation-composition";
import { type GraphQLSchema, parse } from "graphql";
import pino from "pino";
import { inProcess } from "../../gateway/executors/in-process.ts";
import { createGateway, type Gateway, type GatewayOptions } from "../../gateway/gateway.ts";
import type { Caller, SubgraphExecutor } from "../../gateway/request.ts";
import type { Actor } from "../../infra/kernel/actor.ts";

/** A subgraph of a small graph that exists for one test. */
export interface TestSubgraph {
  name: string;
  sdl: string;
  resolvers: Record<string, unknown>;
}

const LINK = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.6", import: ["@key", "@shareable", "@external"])\n`;

export function schemaOf({ sdl, resolvers }: TestSubgraph): GraphQLSchema {
  return buildSubgraphSchema([{ typeDefs: parse(LINK + sdl), resolvers: resolvers as never }]);
}

function compose(subgraphs: readonly TestSubgraph[]): string {
  const composed = composeServices(
    subgraphs.map(({ name, sdl }) => ({ name, url: `http://${name}`, typeDefs: parse(LINK + sdl) })),
  );
  if (!composed.supergraphSdl) throw new Error(composed.errors?.map((e) => e.message).join("\n"));
  return composed.supergraphSdl;
}

/** Executors in this process; a resolver's context is the caller. */
export function executorsOf(subgraphs: readonly TestSubgraph[]): SubgraphExecutor[] {
  return subgraphs.map((subgraph) => inProcess(subgraph.name, schemaOf(subgraph), (caller: Caller) => caller));
}

export function actor(keyId = "key_1"): Actor {
  return {
    tenantId: "team_1",
    keyId,
    memberId: "mem_1",
    email: "a@b.example",
    name: "A",
    role: "admin",
    scopes: ["admin"],
  };
}

/** The keys of the tests: `nk_good` and `nk_other` are known, until they are taken out. */
function testKeys(): Map<string, Actor> {
  return new Map([
    ["nk_good", actor("key_1")],
    ["nk_other", actor("key_2")],
  ]);
}

/** What the gateway logged, one object a line. */
export function memoryLog() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines };
}

export interface TestGateway {
  gateway: Gateway;
  keys: Map<string, Actor>;
  lines: Record<string, unknown>[];
}

export async function gatewayOver(
  subgraphs: readonly TestSubgraph[],
  options: Partial<GatewayOptions> = {},
): Promise<TestGateway> {
  const keys = testKeys();
  const { log, lines } = memoryLog();
  const gateway = await createGateway({
    supergraphSdl: compose(subgraphs),
    executors: executorsOf(subgraphs),
    resolveActor: async (apiKey) => keys.get(apiKey) ?? null,
    log,
    ...options,
  });
  return { gateway, keys, lines };
}
