import type { FastifyReply, FastifyRequest } from "fastify";
import type { Envelope } from "./contract.ts";
import type { Answer } from "./operation.ts";
import { errorBody, INTERNAL_ERROR, wireError } from "./wire/errors.ts";

/** Sends a successful answer. */
export function sendAnswer(reply: FastifyReply, { status, body, replayed }: Answer): FastifyReply {
  reply.code(status);
  if (replayed) reply.header("Idempotent-Replayed", "true");
  return body === undefined ? reply.send() : reply.send(body);
}

/** How errors look on a route. */
export interface ErrorStyle {
  readonly envelope: Envelope;
  /** Where a person reads about a code; an absolute address. */
  readonly helpUrl: (code: string) => string;
}

/** Answers a thrown value: a refusal by its own status, a fault masked, logged and as 500. */
export function answerError(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  style: ErrorStyle,
): FastifyReply {
  const refusal = wireError(thrown);
  if (!refusal)
    request.log.error({ err: thrown, requestId: request.id, route: request.routeOptions.url }, "a REST request failed");
  const error = refusal ?? INTERNAL_ERROR;
  // What is left of a refused body is let run out: a client that is still sending reads no answer.
  if (!request.raw.complete) request.raw.resume();
  if (error.retryAfterSeconds !== undefined)
    reply.header("Retry-After", String(Math.max(1, Math.ceil(error.retryAfterSeconds))));
  if (error.status === 401) reply.header("WWW-Authenticate", "Bearer");
  return reply
    .code(error.status)
    .type("application/json; charset=utf-8")
    .send(errorBody(error, style.envelope, style.helpUrl));
}
