import type { Clock } from "../kernel/clock.ts";
import { LIMITS } from "../kernel/limits.ts";

const LOOK_MS = 250;

/**
 * Repeats a claim of stored bytes until it holds. One that finds them just being removed answers false: they are free
 * when the removal is over, at the latest when its process must have died. False when they are not free even then.
 */
export async function claimWhenFree(clock: Clock, claim: () => Promise<boolean>): Promise<boolean> {
  const untilMs = clock.monotonicMs() + LIMITS.removalWaitMs;
  for (;;) {
    const last = clock.monotonicMs() >= untilMs;
    if (await claim()) return true;
    if (last) return false;
    await clock.sleep(LOOK_MS);
  }
}

/** The moment before which a removal must have begun to count as dead: whoever wants the bytes goes on without it. */
export function removalsDeadBefore(now: Date): Date {
  return new Date(now.getTime() - LIMITS.removalLeaseMs);
}
