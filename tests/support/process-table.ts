import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** A process that cannot be confused with a later one of the same number. */
export interface Living {
  readonly pid: number;
  readonly parent: number;
  /** When it started, in the kernel's ticks. */
  readonly start: string;
  readonly commandLine: string;
}

/** Every process that this user may look at, but no zombie. */
export function processTable(): Living[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map((pid) => living(Number(pid))).filter((found) => found !== null);
}

function living(pid: number): Living | null {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (!stat) return null;
  const [state, parent, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (state === "Z" || state === "X") return null;
  const commandLine = (readOrNull(`/proc/${pid}/cmdline`) ?? "").replaceAll("\0", " ").trim();
  return { pid, parent: Number(parent), start: rest[17]!, commandLine };
}

/**
 * Processes that carry the word in their command line or in the environment that they were started with, so that a
 * process which left its parents is found as well.
 */
export function processesWith(word: string): Living[] {
  return processTable().filter(
    ({ pid, commandLine }) =>
      pid !== process.pid && (commandLine.includes(word) || (readOrNull(`/proc/${pid}/environ`) ?? "").includes(word)),
  );
}

/** Processes that have a file of the folder open, or one that was removed from it. */
export function processesHolding(folder: string): Living[] {
  return processTable().filter(({ pid }) => openFiles(pid).some((file) => file.startsWith(`${folder}/`)));
}

function openFiles(pid: number): string[] {
  const descriptors = orNull(() => readdirSync(`/proc/${pid}/fd`)) ?? [];
  return descriptors.map((one) => orNull(() => readlinkSync(`/proc/${pid}/fd/${one}`)) ?? "");
}

/** The processes and everything below them. */
export function withDescendants(roots: readonly Living[], table = processTable()): Living[] {
  const found = new Map(roots.map((root) => [root.pid, root]));
  for (let grew = true; grew; ) {
    const children = table.filter(({ pid, parent }) => found.has(parent) && !found.has(pid));
    for (const child of children) found.set(child.pid, child);
    grew = children.length > 0;
  }
  return [...found.values()];
}

/** Whether that very process still runs. */
export function isAlive({ pid, start }: Living): boolean {
  return living(pid)?.start === start;
}

/** `kill -9` of processes that may be gone by now. */
export function killAll(processes: readonly Living[]): void {
  for (const process of processes) if (isAlive(process)) kill(process.pid, "SIGKILL");
}

/** False when there is no such process any more. */
export function kill(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

function readOrNull(file: string): string | null {
  return orNull(() => readFileSync(file, "utf8"));
}

/** Null for what is gone, goes while it is looked at, or belongs to another user. */
function orNull<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (["ENOENT", "ESRCH", "EACCES"].includes((error as NodeJS.ErrnoException).code!)) return null;
    throw error;
  }
}
