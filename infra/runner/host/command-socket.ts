import { rmSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { SocketFolder } from "../isolation/socket-folder.ts";
import type { HostAnswer, HostCommand } from "../protocol.ts";

export const HOST_SOCKET = "host.sock";
const MAX_LINE_BYTES = 64 * 1024;

/** Serves the agent's commands on its socket: one JSON line in, one JSON line out, in order. */
export async function serveCommands(folder: string, obey: (command: HostCommand) => HostAnswer): Promise<net.Server> {
  // Whoever holds the lock is the only agent of this folder, so a socket that lies here is a dead one's.
  rmSync(join(folder, HOST_SOCKET), { force: true });
  const server = net.createServer((socket) => {
    let text = "";
    socket.on("error", () => socket.destroy());
    socket.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
        socket.write(`${JSON.stringify(answer(text.slice(0, end), obey))}\n`);
        text = text.slice(end + 1);
      }
      if (text.length > MAX_LINE_BYTES) socket.destroy();
    });
  });
  const before = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) =>
      server.once("error", reject).listen(new SocketFolder(folder).pathOf(HOST_SOCKET), resolve),
    );
  } finally {
    process.umask(before);
  }
  return server;
}

function answer(line: string, obey: (command: HostCommand) => HostAnswer): HostAnswer {
  try {
    const command = JSON.parse(line) as HostCommand;
    if (!isCommand(command)) return { ok: false, code: "bad_command", message: "not a command of this agent" };
    return obey(command);
  } catch (error) {
    return { ok: false, code: "failed", message: (error as Error).message };
  }
}

function isCommand(value: unknown): value is HostCommand {
  if (value === null || typeof value !== "object") return false;
  const { op, orderId, token, intakeUrl } = value as Record<string, unknown>;
  if (op === "list") return true;
  if (op === "hello") return typeof intakeUrl === "string";
  if (typeof orderId !== "string" || orderId === "") return false;
  return (
    op === "observe" ||
    op === "terminate" ||
    (op === "launch" && typeof token === "string" && typeof intakeUrl === "string")
  );
}
