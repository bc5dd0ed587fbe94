import type { Socket } from "node:net";
import { ProtocolViolation } from "./message-guard.ts";

/** From now on an error that a listener of this socket throws destroys the socket, and nothing more. */
export function guardListeners(socket: Socket): void {
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean;
  socket.emit = (event: string | symbol, ...args: unknown[]) => {
    try {
      return emit(event, ...args);
    } catch (error) {
      socket.destroy(new ProtocolViolation("an answer that nobody can read", { cause: error }));
      return true;
    }
  };
}
