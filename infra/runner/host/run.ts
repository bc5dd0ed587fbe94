import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { keepEndingOrphans } from "../isolation/orphans.ts";
import { HostAgent } from "./agent.ts";
import { HostClient } from "./client.ts";
import { HOST_SOCKET, serveCommands } from "./command-socket.ts";
import { takeLock } from "./lock.ts";

export interface HostAgentOptions {
  folder: string;
  allowUnisolated: boolean;
  bubblewrap: string;
  version: string;
  idleExitMs: number | null;
}

/** How often an agent looks whether it is still wanted. */
const LOOK_MS = 1_000;
/** How long an agent that nobody can reach any more may take to end its guests and let go of the lock. */
const LOCK_PATIENCE_MS = 15_000;

/**
 * Runs a host agent until it is told to stop, has been idle for too long, or its folder was removed: no platform finds
 * it then. Returns when another one already serves the folder.
 */
export async function runHostAgent(options: HostAgentOptions): Promise<"served" | "another_serves"> {
  mkdirSync(options.folder, { recursive: true });
  if (!(await takeLockInTime(options.folder))) return "another_serves";
  const report = (message: string) => console.error(JSON.stringify({ at: new Date().toISOString(), message }));
  const letOrphansBe = await keepEndingOrphans(report);
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
    const socket = join(options.folder, HOST_SOCKET);
    const idleExitMs = options.idleExitMs ?? Number.POSITIVE_INFINITY;
    const look = () => (agent.idleMs() > idleExitMs || !existsSync(socket)) && resolve();
    setInterval(look, Math.min(LOOK_MS, idleExitMs)).unref();
  });
  server.close();
  letOrphansBe();
  // Whatever closing meets, this process ends: as long as it lives it holds the lock.
  await agent.close().catch((error: Error) => report(`closing failed: ${error.stack}`));
  return "served";
}

/** Waits for a holder of the lock that does not answer: it serves a removed folder of this name and is about to go. */
async function takeLockInTime(folder: string): Promise<boolean> {
  for (let waitedMs = 0; ; waitedMs += LOOK_MS / 10) {
    if (await takeLock(folder)) return true;
    const other = await HostClient.dial(folder).catch(() => null);
    other?.close();
    if (other || waitedMs >= LOCK_PATIENCE_MS) return false;
    await sleep(LOOK_MS / 10);
  }
}
