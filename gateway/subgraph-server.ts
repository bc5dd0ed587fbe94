import { ApolloServer } from "@apollo/server";
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
} from "@apollo/server/plugin/disabled";
import { fastifyApolloHandler } from "@as-integrations/fastify";
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from "fastify";
import { type ExecutionArgs, GraphQLError, type GraphQLSchema, OperationTypeNode } from "graphql";
import { makeServer } from "graphql-ws";
import { SUBGRAPH_WIRE, subgraphPath } from "../infra/graphql/subgraph-wire.ts";
import { type Actor, verifyActor } from "../infra/kernel/actor.ts";
import type { Clock } from "../infra/kernel/clock.ts";
import { LIMITS } from "../infra/kernel/limits.ts";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import { type ContextFor, inProcess } from "./executors/in-process.ts";
import { mask } from "./plugins/masking.ts";
import { requestRefusal } from "./refusals.ts";
import type { Caller, Result } from "./request.ts";
import { currentRequestId, requestIdOf } from "./request-id.ts";
import { serveSocket, TRUSTED } from "./socket.ts";
import { isStream, mapStream } from "./stream.ts";

export interface SubgraphServerOptions {
  name: string;
  schema: GraphQLSchema;
  contextFor: ContextFor;
  /** The deployment's key: who is not signed with it is refused. */
  signingKey: Uint8Array;
  clock: Clock;
  log: FastifyBaseLogger;
}

/**
 * Serves a subgraph on a process's server, for gateways of the same deployment: it trusts callers that they have signed,
 * and nobody else. `@fastify/websocket` must be registered already.
 */
export async function serveSubgraph(app: FastifyInstance, options: SubgraphServerOptions): Promise<void> {
  const apollo = new ApolloServer<Caller>({
    schema: options.schema,
    introspection: true,
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    formatError: (formatted, error) =>
      error instanceof GraphQLError ? leaving(options, error, currentRequestId.getStore() ?? "").toJSON() : formatted,
    plugins: [
      ApolloServerPluginLandingPageDisabled(),
      ApolloServerPluginInlineTraceDisabled(),
      ApolloServerPluginCacheControlDisabled(),
    ],
  });
  await apollo.start();
  app.addHook("onClose", async () => apollo.stop());
  const handler = fastifyApolloHandler(apollo, {
    context: async (request) =>
      options.contextFor({
        actor: signedActor(options, request.headers[SUBGRAPH_WIRE.actor]),
        requestId: request.id,
      }) as Caller,
  });
  const url = subgraphPath(options.name);
  await app.register(async (scope) => {
    scope.route({
      method: "POST",
      url,
      bodyLimit: LIMITS.jsonBodyBytes * 4, // representations of a whole page, not a client's request
      handler: (request, reply) => currentRequestId.run(request.id, () => handler.call(scope, request, reply)),
    });
    scope.route({
      method: "GET",
      url,
      handler: async (_request, reply) => reply.code(405).send(),
      wsHandler: serveStreams(options),
    });
  });
}

function serveStreams(options: SubgraphServerOptions) {
  const executor = inProcess(options.name, options.schema, options.contextFor);
  const server = makeServer<
    Record<string, unknown>,
    { caller: Caller | null; request: FastifyRequest; close: (code: number, reason: string) => void }
  >({
    schema: options.schema,
    connectionInitWaitTimeout: LIMITS.socketGreetingMs,
    onConnect({ connectionParams, extra }) {
      try {
        const requestId = requestIdOf({
          headers: { [SUBGRAPH_WIRE.requestId]: String(connectionParams?.[SUBGRAPH_WIRE.requestId] ?? "") },
        });
        extra.caller = { actor: signedActor(options, connectionParams?.[SUBGRAPH_WIRE.actor]), requestId };
        return true;
      } catch {
        return false; // closes as forbidden
      }
    },
    context: ({ extra }) => extra.caller!,
    subscribe: async ({ document, operationName, variableValues, contextValue }: ExecutionArgs) => {
      const caller = contextValue as Caller;
      const answer = await executor.execute({
        ...caller,
        document,
        operationType: OperationTypeNode.SUBSCRIPTION,
        operationName: operationName ?? undefined,
        variables: variableValues ?? {},
      });
      const masked = (result: Result): Result =>
        result.errors ? { ...result, errors: result.errors.map((e) => leaving(options, e, caller.requestId)) } : result;
      return isStream(answer)
        ? (mapStream((answer as AsyncIterable<Result>)[Symbol.asyncIterator](), masked) as never)
        : (masked(answer as Result) as never);
    },
  });
  return serveSocket(server, options.log, TRUSTED, ({ request, close }) => ({ caller: null, request, close }));
}

function signedActor({ signingKey, clock }: SubgraphServerOptions, signature: unknown): Actor {
  const actor = typeof signature === "string" ? verifyActor(signature, signingKey, clock.now()) : null;
  if (!actor)
    throw requestRefusal(new Refused(COMMON.unauthorized, { message: "Only gateways of this deployment may ask." }));
  return actor;
}

function leaving({ log, name }: SubgraphServerOptions, error: GraphQLError, requestId: string): GraphQLError {
  return mask(error, requestId, log, name);
}
