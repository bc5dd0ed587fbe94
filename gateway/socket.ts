import type { WebsocketHandler } from "@fastify/websocket";
import type { FastifyBaseLogger, FastifyRequest } from "fastify";
import { CloseCode, handleProtocols, type Server } from "graphql-ws";
import type { WebSocket } from "ws";
import { nextTurnIfBusy } from "./fairness.ts";
import { keepAlive } from "./keep-alive.ts";
import { readAtLeisure } from "./socket-reading.ts";

/** What the peers of a route may send. */
export interface SocketBounds {
  /** One message; a longer one closes the socket as too big. */
  readonly messageBytes: number;
  /** What comes faster is read later. */
  readonly messagesPerSecond: number;
}

/** Peers that belong to the deployment: the server's own largest message holds. */
export const TRUSTED: SocketBounds = {
  messageBytes: Number.POSITIVE_INFINITY,
  messagesPerSecond: Number.POSITIVE_INFINITY,
};

/** The close code for a message that is too long. */
const TOO_BIG = 1009;

/** Of one socket that is being opened. */
export interface OpeningSocket {
  readonly socket: WebSocket;
  readonly request: FastifyRequest;
  readonly close: (code: number, reason: string) => void;
}

/**
 * Carries a graphql-ws server over the sockets of a route. `extraFor` makes what the server knows of one socket; `onMessage`
 * is told the length of each message right before the server takes it, in bytes.
 */
export function serveSocket<Extra>(
  server: Server<Extra>,
  log: FastifyBaseLogger,
  bounds: SocketBounds,
  extraFor: (of: OpeningSocket) => Extra,
  on: { message?: (extra: Extra, bytes: number) => void; closed?: (extra: Extra) => void } = {},
): WebsocketHandler {
  return function serve(socket, request) {
    this.websocketServer.options.handleProtocols = handleProtocols;
    const requestId = request.id;
    const close = (code: number, reason: string) => socket.close(code, reason);
    const fail = (error: unknown) => {
      log.error({ requestId, err: error }, "socket failed");
      close(CloseCode.InternalServerError, "internal_error");
    };
    const extra = extraFor({ socket, request, close });
    const closed = server.opened(
      {
        protocol: socket.protocol,
        send: (text) => send(socket, text),
        close: (code = 1000, reason = "") => close(code, reason),
        onMessage: (take) =>
          socket.on("message", (data: Buffer) => {
            if (socket.readyState !== socket.OPEN) return; // what was sent before the close reached its sender
            if (data.length > bounds.messageBytes)
              return close(TOO_BIG, `A message may have ${bounds.messageBytes} bytes.`);
            on.message?.(extra, data.length);
            take(String(data)).catch(fail);
          }),
      },
      extra,
    );
    const stopPinging = keepAlive(socket, request.raw.socket);
    const stopPacing = readAtLeisure(socket, request.raw.socket, bounds.messagesPerSecond);
    socket.once("error", (error) => log.debug({ requestId, err: error }, "socket error"));
    socket.once("close", (code, reason) => {
      stopPinging();
      stopPacing();
      on.closed?.(extra);
      closed(code, String(reason)).catch(fail);
    });
  };
}

/** Resolves when the kernel has taken the message: that is what slows a stream whose reader is slow. */
async function send(socket: WebSocket, text: string): Promise<void> {
  await nextTurnIfBusy();
  if (socket.readyState !== socket.OPEN) return;
  await new Promise<void>((resolve, reject) => {
    socket.send(text, (error) => (error && socket.readyState === socket.OPEN ? reject(error) : resolve()));
  });
}
