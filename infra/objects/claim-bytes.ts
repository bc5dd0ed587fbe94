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

/** What a removal has not come to by then it lets go, so nobody waits long for bytes that it has not touched. */
const REMOVAL_GIVES_UP_MS = 20_000;

/**
 * Tells a removal whether it has to let go of what it has not touched yet. Its time is over by either clock: where the
 * machine slept meanwhile, or its wall clock was set, others may take it for dead and store the bytes again.
 */
export function removalTime(clock: Clock, begunAt: Date): { readonly isOver: boolean } {
  const begunMs = clock.monotonicMs();
  return {
    get isOver() {
      const wallMs = Math.abs(clock.now().getTime() - begunAt.getTime());
      return Math.max(wallMs, clock.monotonicMs() - begunMs) > REMOVAL_GIVES_UP_MS;
    },
  };
}
