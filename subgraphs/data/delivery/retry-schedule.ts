const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Waits after the first, second, … failure; the last one repeats until the time for retries is over. */
export const RETRY_WAITS_MS: readonly number[] = [
  10 * SECOND_MS,
  30 * SECOND_MS,
  MINUTE_MS,
  2 * MINUTE_MS,
  5 * MINUTE_MS,
  10 * MINUTE_MS,
  20 * MINUTE_MS,
  40 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  3 * HOUR_MS,
  4 * HOUR_MS,
];

/**
 * When to try again after `tries` (1 or more) failures: a random point between four fifths and all of the scheduled wait,
 * so that receivers which were down together are not met by all at once. The last try falls on `until`; null after it.
 *
 * @param random a number in [0, 1)
 */
export function nextTryAt(tries: number, now: Date, until: Date, random: number): Date | null {
  if (now >= until) return null;
  const waitMs = RETRY_WAITS_MS[Math.min(tries, RETRY_WAITS_MS.length) - 1]!;
  return new Date(Math.min(now.getTime() + Math.ceil(waitMs * (0.8 + random / 5)), until.getTime()));
}
