import { setImmediate } from "node:timers/promises";
import { isOrphaned, isSameMark, type OwnerMark, ownerMarkOf } from "./owner-mark.ts";
import { allPids, identifyProcess, isZombie, killProcess, type ProcessIdentity } from "./processes.ts";

/** How often a process that starts others looks for what those of its kind have left on this machine. */
const LOOK_MS = 60_000;
/** Processes that are looked at before anything else may run; one to three milliseconds' worth. */
const AT_A_TIME = 32;

/** Processes of this machine that live although the process that started them is dead. */
export function orphans(): Promise<ProcessIdentity[]> {
  return marked(isOrphaned);
}

/** Ends what lives although the process that started it is dead; says what that was. */
export async function endOrphans(): Promise<ProcessIdentity[]> {
  return (await orphans()).filter(endIfAllowed);
}

/** What belongs to another user is left to that user's processes. */
function endIfAllowed(found: ProcessIdentity): boolean {
  try {
    return killProcess(found);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EPERM") return false;
    throw error;
  }
}

/** Ends everything that bears exactly this mark. */
export async function endProcessesWith(mark: OwnerMark): Promise<void> {
  for (const found of await marked((other) => isSameMark(other, mark))) killProcess(found);
}

/**
 * Ends orphans now and from time to time. Whoever starts processes of this kind does it for all of them: one that was
 * killed may have been the last of its platform.
 *
 * @param report told what was ended, and why nothing could be looked for
 * @returns what stops it, once the first look is over
 */
export async function keepEndingOrphans(report: (message: string) => void): Promise<() => void> {
  const look = () =>
    endOrphans().then(
      ({ length }) => length > 0 && report(`ended ${length} processes whose owner was killed`),
      (error: Error) => report(`what killed processes left can't be looked for: ${error.message}`),
    );
  await look();
  const timer = setInterval(look, LOOK_MS).unref();
  return () => clearInterval(timer);
}

/** Looks at a few processes at a time: there may be thousands, and others wait for their turn meanwhile. */
async function marked(isWanted: (mark: OwnerMark) => boolean): Promise<ProcessIdentity[]> {
  const found: ProcessIdentity[] = [];
  for (const [n, pid] of allPids().entries()) {
    if (n % AT_A_TIME === 0) await setImmediate();
    const identity = identifyProcess(pid);
    const mark = ownerMarkOf(pid);
    if (identity && mark && isWanted(mark) && !isZombie(pid)) found.push(identity);
  }
  return found;
}
