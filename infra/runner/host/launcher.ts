import { spawn } from "node:child_process";
import { chmodSync, closeSync, mkdirSync, openSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { HostClient } from "./client.ts";

export interface LauncherSettings {
  /** Absolute; the agent's files, its socket and its log. */
  folder: string;
  allowUnisolated: boolean;
  /** Path of bubblewrap where it is not on PATH as `bwrap`. */
  bubblewrap?: string;
  version: string;
  /** The agent ends by itself after this long without work and without a platform; 0 for never. */
  idleExitMs: number;
  /** Never start or replace an agent: it is a process that somebody else looks after. */
  attachOnly?: boolean;
}

const LONG_LOG_BYTES = 10 * 1024 * 1024;
/** Where the agent finds the system's programs; a person's own folders are not for guests. */
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const POLL_MS = 10;
const PATIENCE_MS = 20_000;

/**
 * A connection to the folder's host agent, which is started if none is there. The agent gets a process session of its
 * own, no pipe and no terminal of ours, and a chosen environment, so that it outlives the platform that started it.
 * When several platforms start one at once, the lock lets one live and all find that one.
 */
export async function attachToHostAgent(settings: LauncherSettings): Promise<HostClient> {
  const there = await HostClient.dial(settings.folder).catch(() => null);
  if (there) return there;
  if (settings.attachOnly)
    throw new Error(`no host agent answers in ${settings.folder}: start one with "nodus host-agent"`);
  startHostAgent(settings);
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += POLL_MS) {
    const client = await HostClient.dial(settings.folder).catch(() => null);
    if (client) return client;
    await sleep(POLL_MS);
  }
  throw new Error(`the host agent did not come up within ${PATIENCE_MS} ms; see ${logOf(settings.folder)}`);
}

/** Ends an agent and waits until it is gone. Guests that it has end with it. */
export async function endHostAgent(client: HostClient, pid: number): Promise<void> {
  process.kill(pid, "SIGTERM");
  for (let waitedMs = 0; waitedMs < PATIENCE_MS && !client.closed; waitedMs += POLL_MS) await sleep(POLL_MS);
  if (!client.closed) throw new Error(`the host agent ${pid} did not end within ${PATIENCE_MS} ms`);
}

/** @param through a command that runs the agent's as its own arguments, such as one that changes the user */
export function startHostAgent(settings: LauncherSettings, through: string[] = []): void {
  mkdirSync(settings.folder, { recursive: true });
  chmodSync(settings.folder, 0o711);
  setAsideLongLog(settings.folder);
  const log = openSync(logOf(settings.folder), "a", 0o600);
  const options = [
    "--folder",
    settings.folder,
    "--idle-exit-ms",
    String(settings.idleExitMs),
    "--version",
    settings.version,
  ];
  if (settings.allowUnisolated) options.push("--allow-unisolated");
  if (settings.bubblewrap) options.push("--bubblewrap", settings.bubblewrap);
  const [file = process.execPath, ...args] = [
    ...through,
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    entry(),
    ...options,
  ];
  const child = spawn(file, args, {
    cwd: "/",
    detached: true,
    stdio: ["ignore", log, log],
    // Name look-ups and file syncs share this pool: slow names must not hold up the spool.
    env: { PATH: SYSTEM_PATH, UV_THREADPOOL_SIZE: "32" },
  });
  child.unref();
  closeSync(log);
}

/** Keeps one earlier log at most. */
function setAsideLongLog(folder: string): void {
  const log = statSync(logOf(folder), { throwIfNoEntry: false });
  if (log && log.size > LONG_LOG_BYTES) renameSync(logOf(folder), `${logOf(folder)}.1`);
}

/** The agent's entry beside this file, compiled or as source. */
function entry(): string {
  return fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./main.ts" : "./main.js", import.meta.url));
}

function logOf(folder: string): string {
  return join(folder, "host.log");
}
