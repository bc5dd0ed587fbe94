import websocket from "@fastify/websocket";
import Fastify, { type FastifyBaseLogger, type FastifyError, type FastifyInstance, LogController } from "fastify";
import { COMMON } from "../infra/kernel/refusal.ts";
import { GATEWAY } from "./refusals.ts";
import { requestIdOf } from "./request-id.ts";
import { lazyRequestLogger } from "./request-logger.ts";

export interface ProcessServerOptions {
  log: FastifyBaseLogger;
  /** Largest WebSocket message of any route. */
  socketBytes?: number;
}

/** The HTTP server of a process that serves no clients: subgraphs, intake or health alone. Others add their routes. */
export async function createProcessServer({ log, socketBytes }: ProcessServerOptions): Promise<FastifyInstance> {
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: lazyRequestLogger,
    requestIdHeader: false,
    genReqId: requestIdOf,
    forceCloseConnections: true,
  });
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status < 500) return reply.code(status).send({ error: COMMON.invalid_request.code, message: error.message });
    log.error({ requestId: request.id, err: error }, "request failed");
    const { code, message } = GATEWAY.internal_error;
    return reply.code(500).send({ error: code, message });
  });
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ error: COMMON.not_found.code, message: "This process serves no such path." }),
  );
  await app.register(websocket, {
    options: socketBytes === undefined ? {} : { maxPayload: socketBytes },
    errorHandler: (error, socket, request) => {
      log.warn({ requestId: request.id, err: error }, "socket failed");
      socket.terminate();
    },
  });
  return app;
}
