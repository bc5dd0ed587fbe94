import { ApolloServer, type ApolloServerPlugin, type GraphQLRequestContext, HeaderMap } from "@apollo/server";
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginLandingPageDisabled,
} from "@apollo/server/plugin/disabled";
import { type DocumentNode, GraphQLError, type GraphQLFormattedError, Kind } from "graphql";
import type { Actor } from "../infra/kernel/actor.ts";
import { LIMITS } from "../infra/kernel/limits.ts";
import { Refused } from "../infra/kernel/refusal.ts";
import type { KnownDocument } from "./documents.ts";
import type { Gateway } from "./gateway.ts";
import { mask } from "./plugins/masking.ts";
import { GATEWAY, requestRefusal } from "./refusals.ts";
import type { Operation, Variables } from "./request.ts";
import { currentRequestId } from "./request-id.ts";

/** Stands for a text that is no GraphQL, so that its problems are told like all others. */
const UNREADABLE: DocumentNode = { kind: Kind.DOCUMENT, definitions: [] };

/** What Apollo carries through one HTTP request. */
export interface HttpContext {
  readonly actor: Actor | null;
  readonly requestId: string;
  readonly signal: AbortSignal;
  /** Set when the document is known. */
  known?: KnownDocument;
  /** Set when the operation is known. */
  operation?: Operation;
}

/** Apollo Server in front of the gateway: the GraphQL-over-HTTP protocol, CSRF prevention and persisted queries are its own. */
export async function createApollo(gateway: Gateway): Promise<ApolloServer<HttpContext>> {
  const { persisted, documents, log } = gateway;
  const server = new ApolloServer<HttpContext>({
    gateway: {
      onSchemaLoadOrUpdate(callback) {
        callback({ apiSchema: gateway.schema, coreSupergraphSdl: gateway.options.supergraphSdl });
        return () => {};
      },
      load: async () => ({ executor: ({ context }) => runInContext(gateway, context as HttpContext) as never }),
      stop: async () => {},
    },
    // Documents are read by the gateway, limits before validation; Apollo finds them here and does neither again.
    documentStore: {
      get: async (key) => {
        const known = documents.byHash(hashOf(key));
        return known && (known.document ?? UNREADABLE);
      },
      set: async () => {},
      delete: async () => {},
    },
    persistedQueries: {
      ttl: null,
      cache: {
        get: async (key) => persisted.text(hashOf(key)),
        set: async (key, text) => persisted.keep(hashOf(key), text),
        delete: async () => {},
      },
    },
    parseOptions: { maxTokens: LIMITS.graphqlTokens },
    csrfPrevention: true,
    introspection: true, // decided where documents are read
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    stringifyResult: (result) => JSON.stringify(result),
    formatError: (formatted, error) => leaving(formatted, error, gateway),
    logger: {
      debug: (m) => log.debug(m),
      info: (m) => log.info(m),
      warn: (m) => log.warn(m),
      error: (m) => log.error(m),
    },
    plugins: [ApolloServerPluginLandingPageDisabled(), ApolloServerPluginCacheControlDisabled(), reading(gateway)],
  });
  await server.start();
  return server;
}

/** Reads the document, asks the plugins, and answers what may not run. */
function reading(gateway: Gateway): ApolloServerPlugin<HttpContext> {
  return {
    async requestDidStart() {
      return {
        async didResolveSource({ source, queryHash, contextValue }) {
          contextValue.known = gateway.documents.read(source, queryHash);
        },
        async didResolveOperation(request) {
          gateway.persisted.refuseUnregistered(request.queryHash);
          if (request.contextValue.known?.problems.length) return; // answered below, all of them
          request.contextValue.operation = operationOf(request);
          if (request.contextValue.operation) await admit(gateway, request.contextValue.operation);
        },
        async responseForOperation({ contextValue }) {
          const problems = contextValue.known?.problems ?? [];
          if (problems.length === 0) return null;
          const errors = problems.map((problem) => leaving(withoutHttp(problem.toJSON()), problem, gateway));
          return {
            http: { status: 400, headers: new HeaderMap() },
            body: { kind: "single", singleResult: { errors } },
          };
        },
      };
    },
  };
}

function operationOf({
  document,
  operation,
  request,
  contextValue,
}: GraphQLRequestContext<HttpContext>): Operation | undefined {
  if (!document || !operation) return undefined;
  const { actor, requestId, signal } = contextValue;
  const variables = (request.variables ?? {}) as Variables;
  return {
    document,
    definition: operation,
    name: operation.name?.value ?? null,
    variables,
    actor,
    requestId,
    signal,
    transport: "http",
  };
}

async function admit(gateway: Gateway, operation: Operation): Promise<void> {
  try {
    if (operation.definition.operation === "subscription") throw new Refused(GATEWAY.subscription_needs_stream);
    await gateway.operations.admit(operation);
  } catch (error) {
    throw error instanceof Refused ? requestRefusal(error) : error;
  }
}

async function runInContext(gateway: Gateway, { operation }: HttpContext) {
  if (operation) return gateway.operations.run(operation);
  return {
    errors: [
      new GraphQLError("Say which operation of the document is to run.", {
        extensions: { code: "OPERATION_RESOLUTION_FAILURE" },
      }),
    ],
  };
}

/** Errors of the graph were masked on their way; those of Apollo itself pass here. */
function leaving(formatted: GraphQLFormattedError, error: unknown, gateway: Gateway): GraphQLFormattedError {
  if (!(error instanceof GraphQLError)) return formatted;
  const masked = mask(error, currentRequestId.getStore() ?? "", gateway.log, null);
  return masked === error ? formatted : masked.toJSON();
}

function withoutHttp(formatted: GraphQLFormattedError): GraphQLFormattedError {
  const { http, ...extensions } = formatted.extensions ?? {};
  return { ...formatted, extensions };
}

/** Apollo puts prefixes before the hash. */
function hashOf(key: string): string {
  return key.slice(-64);
}
