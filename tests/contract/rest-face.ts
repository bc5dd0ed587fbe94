import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import Fastify, { type FastifyInstance } from "fastify";
import { inProcess } from "../../gateway/executors/in-process.ts";
import { createGateway, type Gateway } from "../../gateway/gateway.ts";
import { Json, SafeInt, Usd } from "../../infra/graphql/scalars.ts";
import type { Actor } from "../../infra/kernel/actor.ts";
import { FetchFailed, type FetchPort } from "../../infra/net/fetch-https.ts";
import { openDiskStore } from "../../infra/objects/disk-store.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import { Drain } from "../../infra/telemetry/drain.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { type Method, readContract } from "../../rest-compat/contract.ts";
import { readDocuments } from "../../rest-compat/documents.ts";
import { helpUrl } from "../../rest-compat/help.ts";
import { restCompat } from "../../rest-compat/run.ts";
import { REST_SERVER_OPTIONS } from "../../rest-compat/server-options.ts";
import { EXTENSIONS } from "../../rest-compat/table/extensions.ts";
import { TABLE } from "../../rest-compat/table/table.ts";
import { bytesPorts } from "../../roles/bytes.ts";
import { composeSupergraph } from "../../roles/compose-supergraph.ts";
import { buildSubgraph, contextFor, SUBGRAPH_NAMES } from "../../roles/graph.ts";
import type { Parts } from "../../roles/parts.ts";
import type { ProcessPlan } from "../../roles/process-plan.ts";
import type { ComputeSettings } from "../../subgraphs/compute/settings.ts";
import { MEMBER, STRANGER, TEAM_KEY } from "../support/actors.ts";
import { type ComputeGraph, computeGraph } from "../support/compute-graph.ts";
import { checkResponse } from "./check-response.ts";

const contract = readContract(projectFile("schema", "contract", "openapi.json"));

/** Who may ask, by what they send. */
const KEYS: Readonly<Record<string, Actor>> = { member: MEMBER, team: TEAM_KEY, stranger: STRANGER };

export interface Ask {
  /** Values of the path, by their names in the contract. */
  path?: Record<string, string>;
  query?: Record<string, string | number>;
  /** An object is sent as JSON, anything else as it is. */
  body?: unknown;
  headers?: Record<string, string>;
  /** Nobody asks without credentials unless null is given. */
  as?: "member" | "team" | "stranger" | null;
  /** HEAD instead of the documented GET. */
  head?: boolean;
}

export interface Answered {
  status: number;
  headers: Readonly<Record<string, string | string[] | number | undefined>>;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: the contract says what it is, and it has been checked
  body: any;
}

/** The REST face over the whole graph, a real database and real stores. Every answer is checked against the contract. */
export interface RestFace {
  readonly app: FastifyInstance;
  readonly compute: ComputeGraph;
  readonly results: ObjectStore;
  readonly gateway: Gateway;
  /** What the graph and the raw streams stand on. */
  readonly parts: Parts;
  ask(operationId: string, ask?: Ask): Promise<Answered>;
  close(): Promise<void>;
}

/** Where imports fetch from; nowhere unless a test brings servers of its own. */
export interface FetchFrom {
  fetch: FetchPort;
  githubApiUrl: string;
  huggingFaceUrl: string;
}

const NOWHERE: FetchFrom = {
  fetch: { get: ({ hostname }) => Promise.reject(new FetchFailed("unreachable", hostname)) },
  githubApiUrl: "https://github.invalid",
  huggingFaceUrl: "https://hf.invalid",
};

export async function restFace(from: FetchFrom = NOWHERE, settings: Partial<ComputeSettings> = {}): Promise<RestFace> {
  const compute = await computeGraph(settings);
  const dataDir = mkdtempSync(path.join(tmpdir(), "nodus-rest-"));
  const logger = createLogger({ level: "silent", role: "test" });
  const drain = new Drain(logger);
  const { githubApiUrl, huggingFaceUrl, fetch } = from;
  // Of all parts of a platform, these are used.
  const parts = {
    ...{ db: compute.db, clock: compute.clock, secretBox: compute.secretBox, wakeups: compute.deps.wakeups },
    ...{ logger, drain, fetch },
    objects: { assets: await openDiskStore(path.join(dataDir, "assets")), results: compute.objects },
    settings: { ...compute.settings, dataDir, githubApiUrl, huggingFaceUrl },
  } as unknown as Parts;
  const gateway = await gatewayOf(compute, parts);
  const app = Fastify({ ...REST_SERVER_OPTIONS, forceCloseConnections: true });
  await app.register(restCompat, {
    contract,
    documents: readDocuments(projectFile("schema", "operations")),
    schema: gateway.schema,
    table: TABLE,
    extensions: EXTENSIONS,
    helpUrl: helpUrl("https://nodus.test"),
    ports: {
      authenticate: async (authorization) => KEYS[authorization?.replace("Bearer ", "") ?? ""] ?? null,
      execute: (request) => gateway.execute(request),
      openStream: ({ tenantId }) => gateway.streams.open("bytes", tenantId),
      bytes: bytesPorts(parts, { alone: true } as ProcessPlan, gateway),
    },
  });
  return {
    ...{ app, compute, gateway, parts, results: compute.objects },
    ask: (operationId, ask = {}) => send(app, operationId, ask),
    close: async () => {
      await app.close();
      await drain.close();
      await gateway.close();
      await compute.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function gatewayOf({ deps, clock }: ComputeGraph, parts: Parts): Promise<Gateway> {
  const subgraphs = SUBGRAPH_NAMES.map(buildSubgraph);
  const context = contextFor(parts, deps);
  return createGateway({
    supergraphSdl: composeSupergraph(subgraphs),
    executors: subgraphs.map(({ name, schema }) => inProcess(name, schema, context)),
    resolveActor: async () => null,
    log: createLogger({ level: "silent", role: "test" }),
    clock,
    scalars: [Usd, SafeInt, Json],
  });
}

async function send(app: FastifyInstance, operationId: string, ask: Ask): Promise<Answered> {
  const operation = contract.operations.get(operationId);
  if (!operation) throw new Error(`the contract has no operation ${operationId}`);
  const { path: values = {}, query = {}, body, as = "member", head = false } = ask;
  const json = typeof body === "object" && !Buffer.isBuffer(body);
  const url = operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const answer = await app.inject({
    method: (head ? "HEAD" : operation.method.toUpperCase()) as Uppercase<Method>,
    url,
    query: Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)])),
    headers: {
      ...(as === null ? {} : { authorization: `Bearer ${as}` }),
      ...(json ? { "content-type": "application/json" } : {}),
      ...ask.headers,
    },
    payload: json ? JSON.stringify(body) : (body as Buffer | undefined),
  });
  const isJson = String(answer.headers["content-type"] ?? "").startsWith("application/json");
  const read = isJson && answer.body !== "" ? answer.json() : answer.body;
  if (!head) checkResponse(operationId, answer.statusCode, answer.headers, read);
  return { status: answer.statusCode, headers: answer.headers, text: answer.body, body: read };
}
