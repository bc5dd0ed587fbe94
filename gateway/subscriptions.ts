import type { WebsocketHandler } from "@fastify/websocket";
import { GraphQLError, getOperationAST } from "graphql";
import { CloseCode, type Context, makeServer, type ServerOptions, type SubscribePayload } from "graphql-ws";
import type { WebSocket } from "ws";
import type { Actor } from "../infra/kernel/actor.ts";
import { LIMITS } from "../infra/kernel/limits.ts";
import { COMMON, type RefusalKind, Refused } from "../infra/kernel/refusal.ts";
import { dismissSocket } from "../infra/net/dismiss-socket.ts";
import { formatted } from "./format.ts";
import type { Gateway } from "./gateway.ts";
import { bearerKey } from "./keys.ts";
import type { OpenStream } from "./open-streams.ts";
import { beyond, GATEWAY, requestRefusal } from "./refusals.ts";
import type { Operation, Variables } from "./request.ts";
import { serveSocket } from "./socket.ts";
import { type SocketOperation, SocketOperations } from "./socket-operations.ts";

/** Between the last message of a socket whose key has ended and its close. */
const LAST_WORDS_MS = 50;
/** The close code after which clients connect again by themselves. */
const TRY_AGAIN_LATER = 1013;
/** As HTTP's 429: clients do not connect again by themselves. */
const TOO_MANY = 4429;
/** What a close frame has room for. */
const REASON_BYTES = 123;

/** What is known of one socket. */
interface Connection {
  readonly requestId: string;
  readonly authorization: string | undefined;
  readonly socket: WebSocket;
  readonly operations: SocketOperations;
  /** The socket as it counts among the gateway's streams. */
  readonly stream: OpenStream;
  /** Bytes of the message that is being taken. */
  messageBytes: number;
  actor: Actor | null;
  /** Stops watching the key, or waiting for one. */
  unwatch: () => void;
}

type Socket = Context<Record<string, unknown>, Connection>;

/** What the protocol's server hands back with an operation that was let in. */
interface Admitted {
  readonly operation: Operation;
  readonly running: SocketOperation;
}

/** Serves graphql-ws: each operation of a socket runs, waits and ends by itself. A message may have `messageBytes`. */
export function serveSockets(gateway: Gateway, messageBytes: number): WebsocketHandler {
  const server = makeServer<Record<string, unknown>, Connection>(protocol(gateway));
  const operations = { operations: gateway.options.operationsPerConnection, bytes: LIMITS.connectionOperationBytes };
  return serveSocket(
    server,
    gateway.log,
    { messageBytes, messagesPerSecond: LIMITS.socketMessagesPerSecond },
    ({ socket, request }): Connection => ({
      requestId: request.id,
      authorization: request.headers.authorization,
      socket,
      operations: new SocketOperations(operations),
      stream: holdSocket(gateway, socket),
      messageBytes: 0,
      actor: null,
      unwatch: () => {},
    }),
    {
      message: (connection, bytes) => {
        connection.messageBytes = bytes;
      },
      closed: (connection) => connection.unwatch(),
    },
  );
}

/** Counts the socket until it is closed, for nobody as long as it has shown no key. */
function holdSocket({ streams }: Gateway, socket: WebSocket): OpenStream {
  const refused = new Refused(GATEWAY.too_many_without_key);
  const stream = streams.openWithoutKey("socket", () => dismissSocket(socket, TRY_AGAIN_LATER, reasonOf(refused)));
  socket.once("close", () => stream.close());
  return stream;
}

function protocol(gateway: Gateway): ServerOptions<Record<string, unknown>, Connection> {
  return {
    connectionInitWaitTimeout: gateway.options.socketGreetingMs,
    onConnect: (socket) => connect(gateway, socket),
    onSubscribe: (socket, id, payload) => begin(gateway, socket, id, payload),
    subscribe: ({ contextValue }) => {
      const { operation, running } = contextValue as Admitted;
      return running.answer(gateway.operations.open(operation));
    },
    execute: ({ contextValue }) => {
      const { operation, running } = contextValue as Admitted;
      return running.answer(gateway.operations.run(operation));
    },
    onNext: (_socket, _id, _payload, _args, result) => formatted(result as never),
    onError: (_socket, _id, _payload, errors) => formatted({ errors }).errors!,
  };
}

/** The key comes with the first message, or with the upgrade request where a client can set headers. */
async function connect(gateway: Gateway, { connectionParams, extra }: Socket): Promise<boolean> {
  const apiKey = keyOf(connectionParams) ?? bearerKey(extra.authorization);
  if (apiKey === null) {
    const closing = setTimeout(() => close(extra.socket, COMMON.unauthorized), gateway.options.socketWithoutKeyMs);
    extra.unwatch = () => clearTimeout(closing);
    return true; // may still read the graph's own types
  }
  let actor: Actor;
  try {
    actor = await gateway.keys.actorFor(apiKey);
    extra.stream.belongsTo(actor.tenantId);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    dismissSocket(extra.socket, closeCodeOf(error), reasonOf(error));
    return false;
  }
  extra.actor = actor;
  extra.unwatch = gateway.keys.watch(actor, () => {
    setTimeout(() => close(extra.socket, GATEWAY.key_ended), LAST_WORDS_MS).unref();
  });
  if (extra.socket.readyState !== extra.socket.OPEN) extra.unwatch();
  return true;
}

function close(socket: WebSocket, kind: RefusalKind): void {
  socket.close(CloseCode.Unauthorized, reasonOf(new Refused(kind)));
}

function closeCodeOf({ kind }: Refused): number {
  if (kind.status === 401) return CloseCode.Unauthorized;
  return kind.status === 429 ? TOO_MANY : TRY_AGAIN_LATER;
}

/** What is wrong and, where there is room, what to do about it. */
function reasonOf({ kind, message, fix }: Refused): string {
  const said = `${kind.code}: ${message}`;
  const all = `${said} ${fix}`;
  return Buffer.byteLength(all) > REASON_BYTES ? said : all;
}

function keyOf(params: Readonly<Record<string, unknown>> | undefined): string | null {
  const header = params?.Authorization ?? params?.authorization;
  if (typeof header === "string") return bearerKey(header) ?? "";
  return typeof params?.apiKey === "string" ? params.apiKey : null;
}

/** Counts the operation from here on, and lets the client complete it before it is open. */
async function begin(gateway: Gateway, socket: Socket, id: string, payload: SubscribePayload) {
  const { extra, subscriptions } = socket;
  const running = extra.operations.begin(extra.messageBytes);
  subscriptions[id] = running.opening;
  try {
    const admitted = await admit(gateway, extra, id, payload, running);
    if (Array.isArray(admitted) || running.signal.aborted) running.over(); // nothing is to run
    return running.unlessGone(admitted);
  } catch (error) {
    running.over();
    throw error;
  }
}

/** What is to run, or why it may not. */
async function admit(
  gateway: Gateway,
  extra: Connection,
  id: string,
  payload: SubscribePayload,
  running: SocketOperation,
) {
  try {
    extra.operations.refuseBeyond();
    running.whenOver(extra.stream.begin(extra.messageBytes));
    if (id.length > LIMITS.operationIdLength)
      throw beyond(GATEWAY.operation_id_too_long, LIMITS.operationIdLength, id.length);
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
      signal: running.signal,
    };
    await gateway.operations.admit(operation);
    const contextValue: Admitted = { operation, running };
    return { schema: gateway.schema, document, operationName: payload.operationName, contextValue };
  } catch (error) {
    if (error instanceof GraphQLError) return [error];
    if (error instanceof Refused) return [requestRefusal(error)];
    throw error; // a fault: closes the socket, and is logged
  }
}
