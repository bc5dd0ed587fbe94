import type { IncomingMessage, ServerResponse } from "node:http";

/** What is said to a client that has not been answered yet, as Node itself says it to one whose headers are late. */
const TOO_LATE = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";

/**
 * Cuts off a client that is still sending its body after `withinMs`, whether it has been answered or not. Without that
 * anybody could hold a connection for as long as they like, a byte at a time.
 */
export function cutSlowBody(request: IncomingMessage, response: ServerResponse, withinMs: number): void {
  if (request.complete || !announcesBody(request)) return;
  const cutting = setTimeout(() => {
    if (request.complete) return; // all of it is here, somebody is slow to read it
    if (!response.headersSent) request.socket.write(TOO_LATE);
    request.destroy();
  }, withinMs).unref();
  request.once("close", () => clearTimeout(cutting));
}

function announcesBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}
