import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { clusterOf, socketFolderOf } from "./place.ts";

/** What a living server of a cluster says about itself. */
export interface PidFile {
  readonly pid: number;
  readonly port: number;
  /** Folder of its Unix socket; null when it has none. */
  readonly socketFolder: string | null;
  /** It takes connections; false while it recovers or stops. */
  readonly ready: boolean;
}

/** Null when no server was started, or when its process is gone. */
export function readPidFile(folder: string): PidFile | null {
  const cluster = clusterOf(folder);
  const lines = readOrNull(path.join(cluster, "postmaster.pid"))?.split("\n");
  if (!lines) return null;
  const pid = Number(lines[0]);
  if (!isServerOf(pid, cluster)) return null;
  return { pid, port: Number(lines[3]), socketFolder: lines[4] || null, ready: lines[7]?.startsWith("ready") ?? false };
}

/**
 * Removes lock files whose process id has gone to another program since, as happens when a container starts again.
 * PostgreSQL cleans up after processes that are gone, but takes a living stranger for a server.
 */
export function clearStrangersLocks(folder: string): void {
  const cluster = clusterOf(folder);
  const sockets = socketFolderOf(folder);
  const locks = existsSync(sockets) ? readdirSync(sockets).filter((name) => name.endsWith(".lock")) : [];
  for (const file of [path.join(cluster, "postmaster.pid"), ...locks.map((name) => path.join(sockets, name))]) {
    const pid = Number(readOrNull(file)?.split("\n")[0]);
    if (pid > 0 && processStart(pid) !== null && !isServerOf(pid, cluster)) rmSync(file, { force: true });
  }
}

/** When a process started, in the kernel's ticks; null when there is none, or only its zombie. */
export function processStart(pid: number): string | null {
  const fields = readOrNull(`/proc/${pid}/stat`)
    ?.replace(/^.*\) /s, "")
    .split(" ");
  return !fields || fields[0] === "Z" || fields[0] === "X" ? null : fields[19]!;
}

/** The pid of a server that was killed may belong to another program since. */
function isServerOf(pid: number, cluster: string): boolean {
  if (!(pid > 1) || processStart(pid) === null) return false;
  return readOrNull(`/proc/${pid}/cmdline`)?.split("\0").includes(cluster) ?? false;
}

/** Null for what is gone, or goes while it is read. */
function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code!)) return null;
    throw error;
  }
}
