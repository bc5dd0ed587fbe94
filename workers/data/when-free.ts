import { isWaitForOthersOver } from "../../infra/db/unavailable.ts";
import type { Clock } from "../../infra/kernel/clock.ts";

const TRY_EVERY_MS = 1_000;

/**
 * Writes down what long work came to, again and again while somebody holds rows that it needs: given up at the first
 * wait, the work would be done once more from the start. Throws what the last try threw once `signal` has aborted.
 */
export async function whenFree<T>(clock: Clock, signal: AbortSignal, settle: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await settle();
    } catch (error) {
      if (!isWaitForOthersOver(error)) throw error;
      await clock.sleep(TRY_EVERY_MS, signal);
      if (signal.aborted) throw error;
    }
  }
}
