import { readFileSync } from "node:fs";
import type { FastifyInstance } from "fastify";
import { remote } from "../gateway/executors/http.ts";
import { inProcess } from "../gateway/executors/in-process.ts";
import { createGateway, type Gateway } from "../gateway/gateway.ts";
import { memoryRateLimit, type RateLimit } from "../gateway/plugins/rate-limit.ts";
import { sharedRateLimit } from "../gateway/plugins/shared-rate-limit.ts";
import type { SubgraphExecutor } from "../gateway/request.ts";
import { createServer } from "../gateway/server.ts";
import { measureStreams } from "../gateway/stream-metrics.ts";
import { Json, SafeInt, Usd } from "../infra/graphql/scalars.ts";
import type { Subgraph } from "../infra/graphql/subgraph.ts";
import { openPostgresRateCounts, openRedisRateCounts } from "../infra/live/rate-counts.ts";
import { MAX_FRAME_BYTES } from "../infra/runner/protocol.ts";
import { projectFile } from "../infra/telemetry/project-root.ts";
import { readContract } from "../rest-compat/contract.ts";
import { readDocuments } from "../rest-compat/documents.ts";
import { helpUrl, serveErrorHelp } from "../rest-compat/help.ts";
import { restCompat } from "../rest-compat/run.ts";
import { REST_SERVER_OPTIONS } from "../rest-compat/server-options.ts";
import { EXTENSIONS } from "../rest-compat/table/extensions.ts";
import { TABLE } from "../rest-compat/table/table.ts";
import { KEYS_TOPIC } from "../subgraphs/compute/api-key/api-key.commands.ts";
import { resolveApiKey } from "../subgraphs/compute/api-key/resolve-api-key.ts";
import type { ComputeServices } from "../subgraphs/compute/compute-context.ts";
import { bytesPorts } from "./bytes.ts";
import { contextFor } from "./graph.ts";
import type { Parts } from "./parts.ts";
import { readPersistedOperations } from "./persisted-operations.ts";
import type { ProcessPlan } from "./process-plan.ts";
import { allRefusals } from "./refusals.ts";

/** The server that clients talk to: GraphQL, its streams and REST, over subgraphs here and elsewhere. */
export async function createGatewayServer(
  parts: Parts,
  plan: ProcessPlan,
  compute: ComputeServices,
  subgraphs: readonly Subgraph[],
): Promise<FastifyInstance> {
  const { settings, db, clock, logger } = parts;
  const gateway = await createGateway({
    supergraphSdl: readFileSync(projectFile("schema", "supergraph.graphql"), "utf8"),
    executors: executorsOf(parts, plan, compute, subgraphs),
    resolveActor: (key) => resolveApiKey(db, key, clock.now()),
    log: logger,
    clock,
    scalars: [Usd, SafeInt, Json],
    introspection: settings.introspection,
    rateLimit: await rateLimitOf(parts, plan),
    streamsPerTeam: settings.streamsPerTeam,
    persisted: {
      operations: settings.persistedOperations ? readPersistedOperations(settings.persistedOperations) : new Map(),
      only: settings.persistedOnly,
    },
  });
  parts.drain.onClose("key watch", watchKeys(parts, gateway));
  measureStreams(parts.metrics, gateway.streams);
  const app = await createServer(gateway, {
    allowedOrigins: settings.corsOrigins.includes("*") ? true : settings.corsOrigins,
    graphiql: settings.graphiql,
    server: REST_SERVER_OPTIONS,
    socketBytes: MAX_FRAME_BYTES,
    helpUrl: (code) => helpUrl(compute.settings.publicUrl)(code),
  });
  await serveRest(app, parts, plan, gateway, compute);
  return app;
}

/** A gateway that runs alone counts by itself; others share their counts in Redis, or in the database without it. */
async function rateLimitOf(parts: Parts, plan: ProcessPlan): Promise<RateLimit> {
  const { settings, db, clock, logger, drain } = parts;
  const perSecond = settings.requestsPerKeyPerSecond;
  if (plan.alone) return memoryRateLimit(perSecond);
  const counts = settings.redisUrl ? openRedisRateCounts(settings.redisUrl, logger) : await openPostgresRateCounts(db);
  drain.onClose("rate counts", () => counts.close());
  return sharedRateLimit({ perSecond, counts, clock, log: logger });
}

/** One for each subgraph: those of this process without HTTP, the others at their addresses. */
function executorsOf(
  parts: Parts,
  plan: ProcessPlan,
  compute: ComputeServices,
  subgraphs: readonly Subgraph[],
): SubgraphExecutor[] {
  const context = contextFor(parts, compute);
  const signing = { signingKey: parts.keys.actor, clock: parts.clock };
  return [
    ...subgraphs.map(({ name, schema }) => inProcess(name, schema, context)),
    ...[...plan.remoteSubgraphs].map(([name, url]) => remote({ name, url, ...signing })),
  ];
}

async function serveRest(
  app: FastifyInstance,
  parts: Parts,
  plan: ProcessPlan,
  gateway: Gateway,
  compute: ComputeServices,
): Promise<void> {
  const documents = readDocuments(projectFile("schema", "operations"));
  await Promise.all([...documents.values()].map((document) => gateway.prepare(document)));
  await serveErrorHelp(app, allRefusals());
  await app.register(restCompat, {
    contract: readContract(projectFile("schema", "contract", "openapi.json")),
    documents,
    schema: gateway.schema,
    table: TABLE,
    extensions: EXTENSIONS,
    helpUrl: (code: string) => helpUrl(compute.settings.publicUrl)(code),
    ports: {
      authenticate: async (authorization) => {
        const key = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
        if (!key) return null;
        const actor = await gateway.keys.actorFor(key);
        await gateway.countRequest(actor);
        return actor;
      },
      execute: (request) => gateway.execute(request),
      openStream: (actor) => gateway.streams.open("bytes", actor.tenantId),
      bytes: bytesPorts(parts, plan, gateway),
    },
  });
}

/** A revoked key's streams end at once in every process: the announcement names no key, so the keys in use are looked up again. */
function watchKeys(parts: Parts, gateway: Gateway): () => void {
  return parts.wakeups.on(KEYS_TOPIC, () => gateway.keys.changed());
}
