import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import { LIMITS } from "../infra/kernel/limits.ts";

/** The share of a second for which messages are counted. */
const WINDOW_MS = 100;

/**
 * Reads a socket no faster than its peer reads what it is answered, and no faster than so many messages in a second. The
 * rest stays with its sender, whom the full connection stops: nothing that a peer sends without reading piles up here.
 *
 * @param wire the connection below the socket
 * @returns what ends the pacing
 */
export function readAtLeisure(
  socket: WebSocket,
  wire: Pick<Socket, "writableLength" | "once" | "off">,
  messagesPerSecond: number,
  backlogBytes: number = LIMITS.socketBacklogBytes,
): () => void {
  const messagesPerWindow = Math.ceil((messagesPerSecond * WINDOW_MS) / 1000);
  let windowEndsAtMs = 0;
  let messages = 0;
  let isBehind = false;
  let resting: NodeJS.Timeout | null = null;
  const goOn = () => {
    if (!isBehind && resting === null) socket.resume();
  };
  const onDrain = () => {
    isBehind = false;
    goOn();
  };
  const onRested = () => {
    resting = null;
    goOn();
  };
  const look = () => {
    const nowMs = performance.now();
    if (nowMs >= windowEndsAtMs) {
      windowEndsAtMs = nowMs + WINDOW_MS;
      messages = 0;
    }
    messages++;
    if (messages > messagesPerWindow && resting === null) resting = setTimeout(onRested, windowEndsAtMs - nowMs);
    if (wire.writableLength > backlogBytes && !isBehind) {
      isBehind = true;
      wire.once("drain", onDrain);
    }
    if (isBehind || resting !== null) socket.pause();
  };
  for (const event of ["message", "ping", "pong"] as const) socket.on(event, look);
  return () => {
    for (const event of ["message", "ping", "pong"] as const) socket.off(event, look);
    wire.off("drain", onDrain);
    if (resting !== null) clearTimeout(resting);
  };
}
