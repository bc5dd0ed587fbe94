import type { FastifyBaseLogger } from "fastify";
import { type DocumentNode, type GraphQLScalarType, type GraphQLSchema, getOperationAST } from "graphql";
import type { Actor } from "../infra/kernel/actor.ts";
import { type Clock, systemClock } from "../infra/kernel/clock.ts";
import { LIMITS } from "../infra/kernel/limits.ts";
import { Documents } from "./documents.ts";
import { Graph } from "./graph.ts";
import { Keys, type ResolveActor } from "./keys.ts";
import { OpenStreams } from "./open-streams.ts";
import { Operations } from "./operations.ts";
import { PersistedOperations } from "./persisted.ts";
import { authentication } from "./plugins/authentication.ts";
import { costLimit, DEFAULT_DOCUMENT_LIMITS, type DocumentLimits } from "./plugins/limits.ts";
import { logging } from "./plugins/logging.ts";
import { masking } from "./plugins/masking.ts";
import type { GatewayPlugin } from "./plugins/plugin.ts";
import { memoryRateLimit, type RateLimit, rateLimit, refuseAboveRate } from "./plugins/rate-limit.ts";
import { tracing } from "./plugins/tracing.ts";
import type { Opened, Operation, Result, SubgraphExecutor, Variables } from "./request.ts";
import { createRouter } from "./router.ts";
import { executeOn } from "./subgraphs.ts";

/** What a gateway is made of. */
export interface GatewayOptions {
  /** The composed supergraph. */
  supergraphSdl: string;
  /** One for each subgraph of the supergraph, by its name there. */
  executors: readonly SubgraphExecutor[];
  /** Finds who a key belongs to; null when it is unknown, revoked or expired. */
  resolveActor: ResolveActor;
  log: FastifyBaseLogger;
  clock?: Clock;
  /** The custom scalars of the subgraphs: with them bad input is refused before any subgraph is asked. */
  scalars?: readonly GraphQLScalarType[];
  /** Whether `__schema` and `__type` are answered, to anybody. Default false. */
  introspection?: boolean;
  /** Limits of one document; those left out are the defaults. */
  limits?: Partial<DocumentLimits>;
  /** Shared by all gateways of a deployment; counts in this process unless given. */
  rateLimit?: RateLimit;
  /** How long one request to a subgraph may take. */
  subgraphTimeoutMs?: number;
  /** How long a query, a mutation, the opening of a subscription or one of its events may take, all steps together. */
  operationTimeoutMs?: number;
  /** Operations at once on one WebSocket. */
  operationsPerConnection?: number;
  /** How long a WebSocket may stay that has not sent `connection_init`. */
  socketGreetingMs?: number;
  /** How long a WebSocket may stay that has shown no key. */
  socketWithoutKeyMs?: number;
  /** Streams of one team that this gateway holds open, whatever carries them. */
  streamsPerTeam?: number;
  /** Streams that it holds open for callers without a key, together. */
  streamsWithoutKey?: number;
  /** Registered operations: texts by `documentHash`. `only` refuses every other document. */
  persisted?: { operations: ReadonlyMap<string, string>; only: boolean };
  /** How long a key's actor is believed without asking again. */
  actorCacheMs?: number;
  /** Further plugins, asked after the gateway's own. */
  plugins?: readonly GatewayPlugin[];
}

/** One operation made in this process. It is trusted: no limit, rate or authentication is applied to it. */
export interface InProcessRequest {
  /** A valid document, parsed once and kept by the caller: plans and completion hang on this node. */
  document: DocumentNode;
  operationName?: string;
  variables?: Variables;
  actor: Actor | null;
  requestId: string;
  signal?: AbortSignal;
}

/** The gateway without its doors: the REST layer runs on this, the HTTP server is built around it. */
export interface Gateway {
  /** The graph as clients see it. */
  readonly schema: GraphQLSchema;
  readonly documents: Documents;
  readonly persisted: PersistedOperations;
  readonly operations: Operations;
  readonly keys: Keys;
  /** What is counted of the streams that are open. */
  readonly streams: OpenStreams;
  readonly log: FastifyBaseLogger;
  readonly options: Readonly<GatewayOptions> & {
    readonly operationsPerConnection: number;
    readonly socketGreetingMs: number;
    readonly socketWithoutKeyMs: number;
    readonly introspection: boolean;
  };
  /** Plans and compiles an operation ahead of its first request; rejects when the document has no such operation. */
  prepare(document: DocumentNode, operationName?: string): Promise<void>;
  /** Runs a query or mutation; never rejects. Errors are masked, refusals keep their code. */
  execute(request: InProcessRequest): Promise<Result>;
  /** Opens a subscription, or says in a result why not. Ends by itself when the actor's key does. */
  subscribe(request: InProcessRequest): Promise<Opened>;
  /** Counts one request of a key; throws `Refused` (`rate_limited`) above the rate. */
  countRequest(actor: Actor): Promise<void>;
  close(): Promise<void>;
}

export async function createGateway(given: GatewayOptions): Promise<Gateway> {
  const options = {
    operationsPerConnection: LIMITS.subscriptionsPerConnection,
    socketGreetingMs: LIMITS.socketGreetingMs,
    socketWithoutKeyMs: LIMITS.socketWithoutKeyMs,
    introspection: false,
    ...given,
  };
  const { log, introspection, executors, clock = systemClock } = options;
  const limits = { ...DEFAULT_DOCUMENT_LIMITS, ...options.limits };
  const rate = options.rateLimit ?? memoryRateLimit(LIMITS.requestsPerKeyPerSecond);
  const watching = [tracing(), logging(log), ...(options.plugins ?? [])];
  const timeoutMs = options.subgraphTimeoutMs ?? LIMITS.subgraphTimeoutMs;
  const operationMs = options.operationTimeoutMs ?? LIMITS.operationTimeoutMs;
  const execute = executeOn({ executors, plugins: watching, timeoutMs, clock });
  const router = await createRouter(options.supergraphSdl, execute, () => clock.monotonicMs() + operationMs);
  const graph = new Graph(router, options.scalars);
  const documents = new Documents({ schema: graph.schema, introspection, limits });
  const guarding = [
    authentication(introspection),
    rateLimit(rate),
    costLimit(limits.cost, (operation) => documents.measureOf(operation)),
    masking(log),
  ];
  const keys = new Keys(options.resolveActor, clock, log, options.actorCacheMs);
  const operations = new Operations(graph, [...guarding, ...watching], keys, clock);
  const streams = new OpenStreams({
    perTeam: options.streamsPerTeam ?? LIMITS.openStreamsPerTeam,
    withoutKey: options.streamsWithoutKey ?? LIMITS.openStreamsWithoutKey,
  });
  return {
    schema: graph.schema,
    documents,
    persisted: new PersistedOperations(documents, options.persisted),
    operations,
    keys,
    streams,
    log,
    options,
    prepare: (document, operationName) => graph.prepare(document, operationName),
    execute: (request) => operations.run(inProcessOperation(request)),
    subscribe: (request) => operations.open(inProcessOperation(request)),
    countRequest: (actor) => refuseAboveRate(rate, actor.keyId),
    async close() {
      keys.close();
      await Promise.all(executors.map((executor) => executor.close?.()));
    },
  };
}

function inProcessOperation(request: InProcessRequest): Operation {
  const { document, operationName, actor, requestId, signal } = request;
  const definition = getOperationAST(document, operationName);
  if (!definition) throw new Error(`the document has no operation ${operationName ?? "without a name"}`);
  const name = definition.name?.value ?? null;
  return {
    document,
    definition,
    name,
    variables: request.variables ?? {},
    actor,
    requestId,
    signal,
    transport: "in-process",
  };
}
