import { fastifyApolloHandler } from "@as-integrations/fastify";
import cors from "@fastify/cors";
import websocket from "@fastify/websocket";
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
  type RouteHandlerMethod,
} from "fastify";
import { refusalError } from "../infra/graphql/errors.ts";
import { parseJsonBody } from "../infra/kernel/json-body.ts";
import { LIMITS } from "../infra/kernel/limits.ts";
import { COMMON, type RefusalKind, Refused } from "../infra/kernel/refusal.ts";
import { onceClosed } from "../infra/net/once-closed.ts";
import { cutSlowBody } from "../infra/net/slow-body.ts";
import { createApollo } from "./apollo.ts";
import type { Gateway } from "./gateway.ts";
import { serveGraphiql } from "./graphiql/graphiql.ts";
import { bearerKey } from "./keys.ts";
import { GATEWAY, refusalHeaders, requestRefusal } from "./refusals.ts";
import { currentRequestId, REQUEST_ID_HEADER, requestIdOf } from "./request-id.ts";
import { lazyRequestLogger } from "./request-logger.ts";
import { serveSse } from "./sse.ts";
import { serveSockets } from "./subscriptions.ts";

/** What the HTTP server around a gateway is told. */
export interface ServerOptions {
  /** Origins whose pages may call; none by default. `true` lets every page. */
  allowedOrigins?: readonly string[] | true;
  /** Serves GraphiQL at `/graphiql`. Default false. */
  graphiql?: boolean;
  /** Most bytes of a GraphQL request. */
  graphqlBodyBytes?: number;
  /** Most bytes of other requests' bodies, where the route says nothing. */
  bodyBytes?: number;
  /** How long a client may take to send a GraphQL request, or what leads nowhere. */
  bodyMs?: number;
  /** What other faces on the same server need of it: nothing can set these afterwards. */
  server?: Pick<FastifyServerOptions, "routerOptions" | "frameworkErrors">;
  /** Largest WebSocket message of any route, when other routes take larger ones than GraphQL. */
  socketBytes?: number;
  /** Where a person reads about an error's code; refusals outside GraphQL lead there. */
  helpUrl?: (code: string) => string;
  /** Whether `X-Forwarded-*` are believed. Default false. */
  trustProxy?: boolean | string | string[];
}

declare module "fastify" {
  interface FastifyRequest {
    /** Bytes of a GraphQL request's body; 0 without one. */
    graphqlBytes: number;
  }
}

/** A Fastify app with GraphQL at `/graphql` and `/graphql/stream`; others add their routes before it listens. */
export async function createServer(gateway: Gateway, options: ServerOptions = {}): Promise<FastifyInstance> {
  const { bodyMs = LIMITS.requestBodyMs } = options;
  const app = Fastify({
    ...options.server,
    loggerInstance: gateway.log,
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: lazyRequestLogger,
    requestIdHeader: false,
    genReqId: requestIdOf,
    bodyLimit: options.bodyBytes ?? LIMITS.jsonBodyBytes,
    trustProxy: options.trustProxy ?? false,
    forceCloseConnections: true,
  });
  app.setErrorHandler((error: FastifyError, request, reply) =>
    refuse(reply, refusalOf(error, request, gateway), options),
  );
  app.setNotFoundHandler((_request, reply) => refuse(reply, new Refused(COMMON.not_found, NO_SUCH_PATH), options));
  app.addHook("onRequest", async (request, reply) => {
    reply.header(REQUEST_ID_HEADER, request.id);
    if (request.is404) cutSlowBody(request.raw, reply.raw, bodyMs);
  });
  await app.register(cors, {
    origin: options.allowedOrigins === true ? true : [...(options.allowedOrigins ?? [])],
    exposedHeaders: [REQUEST_ID_HEADER, "retry-after", "idempotent-replayed"],
    maxAge: 600,
  });
  await app.register(websocket, {
    options: { maxPayload: options.socketBytes ?? options.graphqlBodyBytes ?? LIMITS.graphqlBodyBytes },
    errorHandler: (error, socket, request) => {
      // The sender broke the protocol or a limit: it is being told why by the close code.
      if ((error as NodeJS.ErrnoException).code?.startsWith("WS_ERR_")) return;
      gateway.log.error({ requestId: request.id, err: error }, "socket failed");
      socket.terminate();
    },
  });
  await app.register(async (scope) => serveGraphql(scope, gateway, options));
  if (options.graphiql) await app.register(serveGraphiql);
  app.addHook("onClose", async () => gateway.close());
  return app;
}

async function serveGraphql(scope: FastifyInstance, gateway: Gateway, options: ServerOptions): Promise<void> {
  const apollo = await createApollo(gateway);
  scope.addHook("onClose", async () => apollo.stop());
  readBodies(scope);
  scope.addHook("onRequest", async (request, reply) =>
    cutSlowBody(request.raw, reply.raw, options.bodyMs ?? LIMITS.requestBodyMs),
  );
  scope.setErrorHandler((error: FastifyError, request, reply) => answerError(error, request, reply, gateway));
  const answer = fastifyApolloHandler(apollo, {
    context: async (request, reply) => ({
      actor: await actorOf(gateway, request),
      requestId: request.id,
      signal: goneSignal(reply),
    }),
  });
  const handler: RouteHandlerMethod = (request, reply) =>
    currentRequestId.run(request.id, () => answer.call(scope, request, reply));
  const bodyLimit = options.graphqlBodyBytes ?? LIMITS.graphqlBodyBytes;
  // One route for GET and the upgrade: a route for sockets alone would answer plain GET queries with 404.
  scope.route({
    method: "GET",
    url: "/graphql",
    handler,
    preHandler: options.graphiql ? [toPage] : [],
    wsHandler: serveSockets(gateway, bodyLimit),
  });
  scope.route({ method: "POST", url: "/graphql", bodyLimit, handler });
  serveSse(scope, gateway, bodyLimit, (request) => actorOf(gateway, request));
}

const NO_SUCH_PATH = {
  message: "There is no such path.",
  fix: "GraphQL is at /graphql, REST is under /v1, health at /healthz and /readyz.",
};

/** A refusal outside GraphQL, with the members that one of REST has. */
function refuse(reply: FastifyReply, refused: Refused, { helpUrl }: ServerOptions): FastifyReply {
  const { kind, message, fix } = refused;
  const url = helpUrl && { url: helpUrl(kind.code) };
  return reply
    .code(kind.status)
    .headers(refusalHeaders(refused))
    .send({ error: kind.code, message, fix, ...url, request_id: reply.request.id });
}

/** JSON is read strictly; other bodies are left unread, for Apollo to refuse as cross-site or of the wrong type. */
function readBodies(scope: FastifyInstance): void {
  scope.decorateRequest("graphqlBytes", 0);
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    ["application/json", "application/graphql+json"],
    { parseAs: "buffer" },
    (request, body, done) => {
      request.graphqlBytes = body.length;
      try {
        done(null, parseJsonBody(body as Buffer).value);
      } catch (error) {
        done(error as Error);
      }
    },
  );
  scope.addContentTypeParser("*", { parseAs: "buffer" }, (_request, _body, done) => done(null, undefined));
}

/** Who asks; null without an Authorization header. A header that holds no good key is refused. */
async function actorOf(gateway: Gateway, request: FastifyRequest) {
  const { authorization } = request.headers;
  if (authorization === undefined) return null;
  try {
    const apiKey = bearerKey(authorization);
    if (!apiKey) throw new Refused(COMMON.unauthorized);
    return await gateway.keys.actorFor(apiKey);
  } catch (error) {
    throw error instanceof Refused ? requestRefusal(error) : error;
  }
}

/** Aborts when the client has gone before it had its answer. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  onceClosed(reply.raw, () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return gone.signal;
}

/** A browser that was pointed at the endpoint gets the page. */
async function toPage(request: FastifyRequest, reply: FastifyReply) {
  if (request.headers.accept?.includes("text/html") && !request.url.includes("?")) return reply.redirect("/graphiql");
}

/** Errors before GraphQL began, in GraphQL's form. */
function answerError(error: FastifyError | Refused, request: FastifyRequest, reply: FastifyReply, gateway: Gateway) {
  const refused = refusalOf(error, request, gateway);
  const extensions = { ...refusalError(refused).extensions, requestId: request.id };
  return reply
    .code(refused.kind.status)
    .headers(refusalHeaders(refused))
    .send({ errors: [{ message: refused.message, extensions }] });
}

/** What a client is told of an error; a fault is logged and reads `internal_error`. */
function refusalOf(error: FastifyError | Refused, request: FastifyRequest, gateway: Gateway): Refused {
  if (error instanceof Refused) return error;
  const kind = kindOf(error);
  if (kind === GATEWAY.internal_error) gateway.log.error({ requestId: request.id, err: error }, "request failed");
  return new Refused(kind);
}

function kindOf(error: FastifyError): RefusalKind {
  if (error.statusCode === 413) return COMMON.body_too_large;
  if (error.statusCode === 415) return COMMON.unsupported_media_type;
  return error.statusCode !== undefined && error.statusCode < 500 ? COMMON.invalid_request : GATEWAY.internal_error;
}
