import { readFileSync } from "node:fs";
import path from "node:path";
import { clusterOf } from "./place.ts";

/** What a living server of a cluster says about itself. */
export interface PidFile {
  readonly pid: number;
  readonly port: number;
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
  return { pid, port: Number(lines[3]), ready: lines[7]?.startsWith("ready") ?? false };
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
