import { readFileSync, readlinkSync } from "node:fs";
import { identifyProcess, isZombie, type ProcessIdentity } from "./processes.ts";

/**
 * The variable by which a process names the one that it must not outlive. It is read from outside: the kernel shows the
 * environment that a program was started with, whatever became of it since.
 */
export const OWNER_MARK = "NODUS_OWNER";

/** What a mark says: a process of one pid namespace, and which of its children bears the mark. */
export interface OwnerMark {
  /** As the kernel numbers it; pids of another namespace mean other processes here. */
  readonly pidNamespace: string;
  readonly owner: ProcessIdentity;
  readonly child: number;
}

const MARKED = new RegExp(`(?:^|\0)${OWNER_MARK}=(\\d+)\\.(\\d+)\\.(\\d+)\\.(\\d+)\0`);

const PID_NAMESPACE = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))![0];
const THIS_PROCESS = identifyProcess(process.pid)!;
let children = 0;

/** A mark for one child of this process; no other has it. */
export function newOwnerMark(): OwnerMark {
  return { pidNamespace: PID_NAMESPACE, owner: THIS_PROCESS, child: ++children };
}

/** As a process bears it. */
export function encodeOwnerMark({ pidNamespace, owner, child }: OwnerMark): string {
  return `${pidNamespace}.${owner.pid}.${owner.startTicks}.${child}`;
}

/** Null for a process without a mark, one that is gone, or one that this user may not look at. */
export function ownerMarkOf(pid: number): OwnerMark | null {
  const found = MARKED.exec(environmentOf(pid));
  if (!found) return null;
  const [, pidNamespace = "", owner, startTicks = "", child] = found;
  return { pidNamespace, owner: { pid: Number(owner), startTicks }, child: Number(child) };
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return "";
  }
}

/** Whether both are of one child of one process. */
export function isSameMark(one: OwnerMark, other: OwnerMark): boolean {
  return encodeOwnerMark(one) === encodeOwnerMark(other);
}

/** Whether its owner is known to be dead: of one in another pid namespace nothing is known. */
export function isOrphaned({ pidNamespace, owner }: OwnerMark): boolean {
  if (pidNamespace !== PID_NAMESPACE) return false;
  return identifyProcess(owner.pid)?.startTicks !== owner.startTicks || isZombie(owner.pid);
}
