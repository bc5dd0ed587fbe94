import type { ServerResponse } from "node:http";

/** Calls `act` once, when an answer is over or its client has gone; at once when that is so already. */
export function onceClosed(response: ServerResponse, act: () => void): void {
  if (response.closed) act();
  else response.once("close", act);
}
