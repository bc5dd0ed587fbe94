import type { WebsocketHandler } from "@fastify/websocket";
import { GraphQLError, getOperationAST } from "graphql";
import { CloseCode, type Context, makeServer, type ServerOptions, type SubscribePayload } from "graphql-ws";
import type { WebSocket } from "ws";
import type { Actor } from "../infra/kernel/actor.ts";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import { formatted } from "./format.ts";
import type { Gateway } from "./gateway.ts";
import { bearerKey } from "./keys.ts";
import { beyond, GATEWAY, requestRefusal } from "./refusals.ts";
import type { Operation, Variables } from "./request.ts";
import { serveSocket } from "./socket.ts";

/** Between the last message of a socket whose key has ended and its close. */
const LAST_WORDS_MS = 50;
/** The close code after which clients connect again by themselves. */
const TRY_AGAIN_LATER = 1013;

/** What is known of one socket. */
interface Connection {
  readonly requestId: string;
  readonly authorization: string | undefined;
  readonly socket: WebSocket;
  actor: Actor | null;
  /** Stops watching the key. */
  unwatch: () => void;
}

type Socket = Context<Record<string, unknown>, Connection>;

/** Serves graphql-ws: each operation of a socket runs, waits and ends by itself. */
export function serveSockets(gateway: Gateway): WebsocketHandler {
  const server = makeServer<Record<string, unknown>, Connection>(protocol(gateway));
  return serveSocket(
    server,
    gateway.log,
    ({ socket, request }) => ({
      requestId: request.id,
      authorization: request.headers.authorization,
      socket,
      actor: null,
      unwatch: () => {},
    }),
    (connection) => connection.unwatch(),
  );
}

function protocol(gateway: Gateway): ServerOptions<Record<string, unknown>, Connection> {
  return {
    onConnect: (socket) => connect(gateway, socket),
    onSubscribe: (socket, id, payload) => subscribe(gateway, socket, id, payload),
    subscribe: (args) => gateway.operations.open(args.contextValue as Operation),
    execute: (args) => gateway.operations.run(args.contextValue as Operation),
    onNext: (_socket, _id, _payload, _args, result) => formatted(result as never),
    onError: (_socket, _id, _payload, errors) => formatted({ errors }).errors!,
  };
}

/** The key comes with the first message, or with the upgrade request where a client can set headers. */
async function connect(gateway: Gateway, { connectionParams, extra }: Socket): Promise<boolean> {
  const apiKey = keyOf(connectionParams) ?? bearerKey(extra.authorization);
  if (apiKey === null) return true; // may still read the graph's own types
  try {
    extra.actor = await gateway.keys.actorFor(apiKey);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    extra.socket.close(
      error.kind.status === 401 ? CloseCode.Unauthorized : TRY_AGAIN_LATER,
      `${error.kind.code}: ${error.message}`,
    );
    return false;
  }
  extra.unwatch = gateway.keys.watch(extra.actor, () => {
    const { kind } = new Refused(GATEWAY.key_ended);
    setTimeout(
      () => extra.socket.close(CloseCode.Unauthorized, `${kind.code}: ${kind.message}`),
      LAST_WORDS_MS,
    ).unref();
  });
  if (extra.socket.readyState !== extra.socket.OPEN) extra.unwatch();
  return true;
}

function keyOf(params: Readonly<Record<string, unknown>> | undefined): string | null {
  const header = params?.Authorization ?? params?.authorization;
  if (typeof header === "string") return bearerKey(header) ?? "";
  return typeof params?.apiKey === "string" ? params.apiKey : null;
}

async function subscribe(gateway: Gateway, { extra, subscriptions }: Socket, id: string, payload: SubscribePayload) {
  try {
    const open = Object.keys(subscriptions).length; // this one included
    const limit = gateway.options.operationsPerConnection;
    if (open > limit) throw beyond(GATEWAY.too_many_operations, limit, open);
    const known = gateway.persisted.resolve(payload);
    if (!known.document || known.problems.length > 0) return known.problems;
    const { document } = known;
    const definition = getOperationAST(document, payload.operationName);
    if (!definition)
      throw new Refused(COMMON.invalid_request, { message: "Say which operation of the document is to run." });
    const operation: Operation = {
      document,
      definition,
      name: definition.name?.value ?? null,
      variables: (payload.variables ?? {}) as Variables,
      actor: extra.actor,
      requestId: `${extra.requestId}/${id.slice(0, 64)}`,
      transport: "ws",
    };
    await gateway.operations.admit(operation);
    return { schema: gateway.schema, document, operationName: payload.operationName, contextValue: operation };
  } catch (error) {
    if (error instanceof GraphQLError) return [error];
    if (error instanceof Refused) return [requestRefusal(error)];
    throw error; // a fault: closes the socket, and is logged
  }
}
