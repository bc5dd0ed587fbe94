import type { FastifyReply, FastifyRequest } from "fastify";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import type { Caller } from "./ports.ts";

/**
 * The caller of an authenticated route. Its signal hangs on the response: the request's own "close" comes as soon as
 * the body is read, which would abort every POST.
 */
export function callerOf(request: FastifyRequest, reply: FastifyReply): Caller {
  const actor = request.restActor;
  if (!actor) throw new Refused(COMMON.unauthorized);
  const gone = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return { actor, requestId: request.id, signal: gone.signal };
}
