import type { FastifyReply, FastifyRequest } from "fastify";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import { onceClosed } from "../infra/net/once-closed.ts";
import type { Caller, RestPorts } from "./ports.ts";

/**
 * The caller of an authenticated route. Its signal hangs on the response: the request's own "close" comes as soon as
 * the body is read, which would abort every POST.
 */
export function callerOf(request: FastifyRequest, reply: FastifyReply): Caller {
  const actor = request.restActor;
  if (!actor) throw new Refused(COMMON.unauthorized);
  const gone = new AbortController();
  onceClosed(reply.raw, () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return { actor, requestId: request.id, signal: gone.signal };
}

/** Counts an exchange that streams until its connection carries it no more. Throws `Refused` when it is one too many. */
export function holdStream(ports: Pick<RestPorts, "openStream">, { actor }: Caller, reply: FastifyReply): void {
  const stream = ports.openStream(actor);
  onceClosed(reply.raw, () => stream.close());
}
