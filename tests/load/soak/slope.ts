/** A measurement at a time. */
export interface Sample {
  readonly atMs: number;
  readonly value: number;
}

/**
 * How fast values grow, per hour, by least squares. What happens while caches fill is left out: the first third.
 * Null when fewer than three samples are left.
 */
export function growthPerHour(samples: readonly Sample[]): number | null {
  const late = samples.slice(Math.floor(samples.length / 3));
  if (late.length < 3) return null;
  const meanMs = mean(late.map(({ atMs }) => atMs));
  const meanValue = mean(late.map(({ value }) => value));
  let together = 0;
  let spread = 0;
  for (const { atMs, value } of late) {
    together += (atMs - meanMs) * (value - meanValue);
    spread += (atMs - meanMs) ** 2;
  }
  return spread === 0 ? null : (together / spread) * 3_600_000;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
