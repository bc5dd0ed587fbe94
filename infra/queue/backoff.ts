/** Waits between repeated tries: doubling from the first to the longest, spread so that failures do not come back in step. */
export interface BackoffPolicy {
  /** Wait before the second try, before jitter. */
  firstMs: number;
  /** No wait is longer than this, jitter included. */
  longestMs: number;
}

/** How long jobs wait for their next run. */
export const JOB_BACKOFF: BackoffPolicy = { firstMs: 500, longestMs: 60_000 };

/** How long a lost connection waits for its next try. */
export const RECONNECT_BACKOFF: BackoffPolicy = { firstMs: 100, longestMs: 5_000 };

/**
 * Milliseconds to wait after `failures` tries (1 or more) have failed: a random point in the upper half of
 * `firstMs × 2^(failures − 1)`, which is never above `longestMs`.
 *
 * @param random a number in [0, 1), such as `Math.random`
 */
export function backoffMs(policy: BackoffPolicy, failures: number, random: () => number): number {
  const doublings = Math.min(Math.max(failures - 1, 0), 30);
  const ceilingMs = Math.min(policy.firstMs * 2 ** doublings, policy.longestMs);
  return Math.floor(ceilingMs / 2 + (ceilingMs / 2) * random());
}
