import { mkdirSync } from "node:fs";
import { HostAgent } from "./agent.ts";
import { serveCommands } from "./command-socket.ts";
import { takeLock } from "./lock.ts";

export interface HostAgentOptions {
  folder: string;
  allowUnisolated: boolean;
  bubblewrap: string;
  version: string;
  idleExitMs: number | null;
}

/** Runs a host agent until it is told to stop. Returns at once when another one already serves the folder. */
export async function runHostAgent(options: HostAgentOptions): Promise<"served" | "another_serves"> {
  mkdirSync(options.folder, { recursive: true });
  if (!(await takeLock(options.folder))) return "another_serves";
  const report = (message: string) => console.error(JSON.stringify({ at: new Date().toISOString(), message }));
  const agent = await HostAgent.start({ ...options, report });
  const server = await serveCommands(options.folder, (command) => agent.obey(command));
  report(
    `host agent ${process.pid} serves ${options.folder}; isolation ${agent.isolation.level}: ${agent.isolation.detail}`,
  );
  // One order's fault must not end every other guest of the machine; it is reported and its lease runs out.
  process.on("uncaughtException", (error) => report(`uncaught: ${error.stack}`));
  process.on("unhandledRejection", (reason) => report(`unhandled: ${(reason as Error)?.stack ?? reason}`));
  await new Promise<void>((resolve) => {
    // A terminal that closes is no reason to end what runs here.
    process.on("SIGHUP", () => {});
    process.once("SIGTERM", resolve);
    process.once("SIGINT", resolve);
    if (options.idleExitMs === null) return;
    const { idleExitMs } = options;
    setInterval(() => agent.idleMs() > idleExitMs && resolve(), Math.min(1_000, idleExitMs)).unref();
  });
  server.close();
  await agent.close();
  return "served";
}
