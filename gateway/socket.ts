import type { WebsocketHandler } from "@fastify/websocket";
import type { FastifyBaseLogger, FastifyRequest } from "fastify";
import { CloseCode, handleProtocols, type Server } from "graphql-ws";
import type { WebSocket } from "ws";
import { nextTurnIfBusy } from "./fairness.ts";
import { keepAlive } from "./keep-alive.ts";

/** Carries a graphql-ws server over the sockets of a route. `extraFor` makes what the server knows of one socket. */
export function serveSocket<Extra>(
  server: Server<Extra>,
  log: FastifyBaseLogger,
  extraFor: (of: {
    socket: WebSocket;
    request: FastifyRequest;
    close: (code: number, reason: string) => void;
  }) => Extra,
  onClosed: (extra: Extra) => void = () => {},
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
        onMessage: (take) => socket.on("message", (data) => void take(String(data)).catch(fail)),
      },
      extra,
    );
    const stopPinging = keepAlive(socket, request.raw.socket);
    socket.once("error", (error) => log.debug({ requestId, err: error }, "socket error"));
    socket.once("close", (code, reason) => {
      stopPinging();
      onClosed(extra);
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
