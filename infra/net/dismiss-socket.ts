import type { WebSocket } from "ws";

/** Between the close of a socket and the cut, should its peer not close it in turn. */
const LAST_WORDS_MS = 50;

/** Closes a socket whose place is needed: its peer is told why, and is not waited for. */
export function dismissSocket(socket: WebSocket, code: number, reason: string): void {
  socket.close(code, reason);
  setTimeout(() => socket.terminate(), LAST_WORDS_MS).unref();
}
