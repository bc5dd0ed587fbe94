import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** Names a request in answers, log lines and errors. */
export const REQUEST_ID_HEADER = "x-request-id";

/** The caller's own request id when it is fit to be logged and sent back, else a new one. */
export function requestIdOf(request: Pick<IncomingMessage, "headers">): string {
  const given = request.headers[REQUEST_ID_HEADER];
  return typeof given === "string" && /^[A-Za-z0-9._:-]{1,128}$/.test(given) ? given : randomUUID();
}

/** The id of the HTTP request that runs, for places that a library calls without telling which request it is. */
export const currentRequestId = new AsyncLocalStorage<string>();
