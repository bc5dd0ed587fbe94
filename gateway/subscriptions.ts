import type { WebsocketHandler } from "@fastify/websocket";
import { GraphQLError, getOperationAST } from "graphql";
import {
  CloseCode,
  type Context,
  handleProtocols,
  makeServer,
  type ServerOptions,
  type SubscribePayload,
} from "graphql-ws";
import type { WebSocket } from "ws";
import type { Actor } from "../infra/kernel/actor.ts";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import { formatted } from "./format.ts";
import type { Gateway } from "./gateway.ts";
import { bearerKey } from "./keys.ts";
import { beyond, GATEWAY, requestRefusal } from "./refusals.ts";
import type { Operation, Variables } from "./request.ts";

const PING_MS = 12_000;
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
  return function serve(socket, request) {
    this.websocketServer.options.handleProtocols = handleProtocols;
    const { authorization } = request.headers;
    const connection: Connection = { requestId: request.id, authorization, socket, actor: null, unwatch: () => {} };
    const fail = (error: unknown) => {
      gateway.log.error({ requestId: request.id, err: error }, "socket failed");
      socket.close(CloseCode.InternalServerError, "internal_error");
    };
    const closed = server.opened(
      {
        protocol: socket.protocol,
        send: (text) => send(socket, text),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (take) => socket.on("message", (data) => void take(String(data)).catch(fail)),
      },
      connection,
    );
    const stopPinging = keepAlive(socket);
    socket.once("error", (error) => gateway.log.debug({ requestId: request.id, err: error }, "socket error"));
    socket.once("close", (code, reason) => {
      stopPinging();
      connection.unwatch();
      closed(code, String(reason)).catch(fail);
    });
  };
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

/** Resolves when the kernel has taken the message: that is what slows a stream whose reader is slow. */
function send(socket: WebSocket, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    if (socket.readyState !== socket.OPEN) return resolve();
    socket.send(text, (error) => (error && socket.readyState === socket.OPEN ? reject(error) : resolve()));
  });
}

/** Finds out a reader that has gone without a word. */
function keepAlive(socket: WebSocket): () => void {
  let answered = true;
  const onPong = () => {
    answered = true;
  };
  socket.on("pong", onPong);
  const pinging = setInterval(() => {
    if (!answered) return socket.terminate();
    answered = false;
    socket.ping();
  }, PING_MS);
  return () => {
    clearInterval(pinging);
    socket.off("pong", onPong);
  };
}
