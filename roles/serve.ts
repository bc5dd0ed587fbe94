import { readFileSync } from "node:fs";
import type { FastifyInstance } from "fastify";
import { inProcess } from "../gateway/executors/in-process.ts";
import { createGateway, type Gateway } from "../gateway/gateway.ts";
import { memoryRateLimit } from "../gateway/plugins/rate-limit.ts";
import { createServer } from "../gateway/server.ts";
import { Json, SafeInt, Usd } from "../infra/graphql/scalars.ts";
import { MAX_FRAME_BYTES } from "../infra/runner/protocol.ts";
import { type Checks, liveness, readiness } from "../infra/telemetry/health.ts";
import { projectFile } from "../infra/telemetry/project-root.ts";
import { registerIntake } from "../intake/server.ts";
import { createIntake } from "../intake/session-hub.ts";
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
import { buildSubgraph, contextFor, SUBGRAPH_NAMES } from "./graph.ts";
import type { Parts } from "./parts.ts";
import { readPersistedOperations } from "./persisted-operations.ts";
import { allRefusals } from "./refusals.ts";

/** Builds the HTTP face: the graph, REST and intake on one server, which does not listen yet. */
export async function createFace(
  parts: Parts,
  compute: ComputeServices,
  checks: Checks,
): Promise<{ app: FastifyInstance; gateway: Gateway; phase: Phase }> {
  const { settings, db, clock, logger } = parts;
  const subgraphs = SUBGRAPH_NAMES.map(buildSubgraph);
  const context = contextFor(parts, compute);
  const gateway = await createGateway({
    supergraphSdl: readFileSync(projectFile("schema", "supergraph.graphql"), "utf8"),
    executors: subgraphs.map(({ name, schema }) => inProcess(name, schema, context)),
    resolveActor: (key) => resolveApiKey(db, key, clock.now()),
    log: logger,
    clock,
    scalars: [Usd, SafeInt, Json],
    introspection: settings.introspection,
    rateLimit: memoryRateLimit(settings.requestsPerKeyPerSecond),
    persisted: {
      operations: settings.persistedOperations ? readPersistedOperations(settings.persistedOperations) : new Map(),
      only: settings.persistedOnly,
    },
  });
  parts.drain.onClose("key watch", watchKeys(parts, gateway));
  const app = await createServer(gateway, {
    allowedOrigins: settings.corsOrigins.includes("*") ? true : settings.corsOrigins,
    graphiql: settings.graphiql,
    server: REST_SERVER_OPTIONS,
    socketBytes: MAX_FRAME_BYTES,
  });
  const phase: Phase = { now: "starting" };
  serveHealth(app, parts, checks, phase);
  await serveRest(app, parts, gateway, compute);
  const intake = createIntake({
    db,
    clock,
    settings: compute.settings,
    secrets: parts.secretPins,
    random: (size) => crypto.getRandomValues(new Uint8Array(size)),
    logger,
    wakeups: parts.wakeups,
  });
  await registerIntake(app, { db, intake, assets: parts.objects.assets, outputs: parts.objects.results });
  return { app, gateway, phase };
}

/** What `/readyz` says of the whole process. */
export interface Phase {
  now: "starting" | "serving" | "stopping";
}

function serveHealth(app: FastifyInstance, parts: Parts, checks: Checks, phase: Phase): void {
  app.get("/healthz", async () => liveness().body);
  app.get("/readyz", async (_request, reply) => {
    const { status, body } = await readiness(checks, phase.now);
    return reply.code(status).send(body);
  });
  app.get("/metrics", async (_request, reply) => {
    const { contentType, body } = await parts.metrics.text();
    return reply.type(contentType).send(body);
  });
}

async function serveRest(
  app: FastifyInstance,
  parts: Parts,
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
      bytes: bytesPorts(parts, gateway),
    },
  });
}

/** A revoked key's streams end at once in every process: the announcement names no key, so the keys in use are looked up again. */
function watchKeys(parts: Parts, gateway: Gateway): () => void {
  return parts.wakeups.on(KEYS_TOPIC, () => gateway.keys.changed());
}
