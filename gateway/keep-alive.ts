import type { Socket } from "node:net";
import type { WebSocket } from "ws";

const PING_MS = 12_000;

/**
 * Finds out a reader that has gone without a word, and cuts it off: it has neither answered a ping nor, being behind,
 * taken anything since. A ping waits behind what was sent before it, so a slow reader answers late and is not gone.
 *
 * @param wire the connection below the socket
 * @returns what ends the watch
 */
export function keepAlive(
  socket: WebSocket,
  wire: Pick<Socket, "bytesWritten" | "writableLength">,
  everyMs = PING_MS,
): () => void {
  let answered = true;
  let taken = takenFrom(wire);
  let wasBehind = false;
  const onPong = () => {
    answered = true;
  };
  socket.on("pong", onPong);
  const watching = setInterval(() => {
    const now = takenFrom(wire);
    const isBehind = wire.writableLength > 0;
    // Only for a reader that is behind does this prove anything: otherwise the kernel took it, for nobody perhaps.
    const takes = (isBehind || wasBehind) && now > taken;
    if (!answered && !takes) return socket.terminate();
    taken = now;
    wasBehind = isBehind;
    if (!answered) return;
    answered = false;
    socket.ping();
  }, everyMs);
  return () => {
    clearInterval(watching);
    socket.off("pong", onPong);
  };
}

/** Bytes that the kernel has taken. */
function takenFrom(wire: Pick<Socket, "bytesWritten" | "writableLength">): number {
  return wire.bytesWritten - wire.writableLength;
}
