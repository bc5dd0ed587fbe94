import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** A process that can't be confused with a later one that got the same pid. */
export interface ProcessIdentity {
  pid: number;
  /** Start time in clock ticks since boot, from /proc/<pid>/stat. */
  startTicks: string;
}

export function identifyProcess(pid: number): ProcessIdentity | null {
  const fields = statFields(pid);
  return fields ? { pid, startTicks: fields[19]! } : null;
}

/** Sends SIGKILL if that very process still lives; true when it was there. */
export function killProcess(identity: ProcessIdentity): boolean {
  if (identifyProcess(identity.pid)?.startTicks !== identity.startTicks) return false;
  return killPid(identity.pid);
}

/** False when there is no such process any more. */
export function killPid(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

export function isZombie(pid: number): boolean {
  return statFields(pid)?.[0] === "Z";
}

/** How old a list of all namespaces may be: many guests ask at the same time. */
const SNAPSHOT_MS = 100;
let snapshot: { atMs: number; pidsByNamespace: Map<string, number[]> } = {
  atMs: Number.NEGATIVE_INFINITY,
  pidsByNamespace: new Map(),
};

/** Pids of all processes in the PID namespace of `pid`, as of just now; empty when it is gone or may not be looked at. */
export function pidsInNamespaceOf(pid: number): number[] {
  if (performance.now() - snapshot.atMs > SNAPSHOT_MS) {
    const pidsByNamespace = Map.groupBy(allPids(), (other) => pidNamespaceOf(other) ?? "");
    snapshot = { atMs: performance.now(), pidsByNamespace };
  }
  const namespace = pidNamespaceOf(pid);
  return namespace === null ? [] : (snapshot.pidsByNamespace.get(namespace) ?? []);
}

function pidNamespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null; // gone, or another user's
  }
}

export function allPids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Memory that a process alone uses plus its share of what it shares, in bytes; 0 when it is gone. */
export function proportionalMemoryBytes(pid: number): number {
  try {
    const match = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"));
    return match ? Number(match[1]) * 1024 : 0;
  } catch {
    return 0;
  }
}

/** User and system time of a process in ms, at the kernel's usual 100 ticks a second; 0 when it is gone. */
export function processorMs(pid: number): number {
  const fields = statFields(pid);
  return fields ? (Number(fields[11]) + Number(fields[12])) * 10 : 0;
}

/** Fields of /proc/<pid>/stat from the state on; the name before it may hold spaces and brackets. */
function statFields(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}
