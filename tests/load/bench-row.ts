import type { Bench } from "./bench-place.ts";

/** One line of the table: what Nodus did beside the bare minimum of the same work, measured in the same run. */
export interface Outcome {
  /** What was measured. */
  readonly what: string;
  readonly nodus: string;
  readonly baseline: string;
  /** Nodus as a share or multiple of the baseline. */
  readonly ratio: string;
  /** Processor time of one operation in microseconds, Nodus then baseline; it says more than rates on a busy machine. */
  readonly cpu: string;
  readonly aim: string;
  /** Null where nothing is aimed at. */
  readonly met: boolean | null;
  /** What the baseline is, and whatever helps to read the line. */
  readonly note: string;
}

/** One question of the bench. */
export interface BenchRow {
  /** For `--row`. */
  readonly name: string;
  readonly run: (bench: Bench) => Promise<Outcome[]>;
}

/** Operations a second and what one cost. */
export interface Rate {
  readonly perSecond: number;
  /** Processor time of one operation in the process that does the work, in microseconds. */
  readonly cpuMicros: number;
}

interface Compared {
  what: string;
  nodus: Rate;
  baseline: Rate;
  note: string;
  /** Least operations a second. */
  leastPerSecond?: number;
  /** Least share of the baseline's rate. */
  leastShare?: number;
}

/** A line that compares two rates. */
export function comparedRates({ what, nodus, baseline, note, leastPerSecond, leastShare }: Compared): Outcome {
  const share = nodus.perSecond / baseline.perSecond;
  const aims = [
    ...(leastPerSecond === undefined
      ? []
      : [{ text: `≥ ${leastPerSecond}/s`, met: nodus.perSecond >= leastPerSecond }]),
    ...(leastShare === undefined ? [] : [{ text: `≥ ${percent(leastShare)}`, met: share >= leastShare }]),
  ];
  return {
    what,
    nodus: `${Math.round(nodus.perSecond)}/s`,
    baseline: `${Math.round(baseline.perSecond)}/s`,
    ratio: percent(share),
    cpu: `${Math.round(nodus.cpuMicros)} / ${Math.round(baseline.cpuMicros)}`,
    aim: aims.map((aim) => aim.text).join(", "),
    met: aims.length === 0 ? null : aims.every((aim) => aim.met),
    note,
  };
}

/** A line that compares two sets of latencies by median and 95th percentile. */
export function comparedLatencies(line: {
  what: string;
  nodusMs: readonly number[];
  baselineMs: readonly number[];
  /** Largest median and 95th percentile; null where only the other one counts. */
  most: { p50Ms: number | null; p95Ms: number | null };
  note: string;
}): Outcome {
  const { what, nodusMs, baselineMs, most, note } = line;
  const [p50, p95] = [percentile(nodusMs, 0.5), percentile(nodusMs, 0.95)];
  const aims = [
    ...(most.p50Ms === null ? [] : [{ text: `p50 ≤ ${most.p50Ms} ms`, met: p50 <= most.p50Ms }]),
    ...(most.p95Ms === null ? [] : [{ text: `p95 ≤ ${most.p95Ms} ms`, met: p95 <= most.p95Ms }]),
  ];
  return {
    what,
    nodus: spread(nodusMs),
    baseline: spread(baselineMs),
    ratio: `+${(p50 - percentile(baselineMs, 0.5)).toFixed(1)} ms`,
    cpu: "",
    aim: aims.map((aim) => aim.text).join(", "),
    met: aims.length === 0 ? null : aims.every((aim) => aim.met),
    note,
  };
}

/** The value that the given share of the values stays at or below. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Median and 95th percentile as they are printed. */
export function spread(valuesMs: readonly number[]): string {
  return `${short(percentile(valuesMs, 0.5))} / ${short(percentile(valuesMs, 0.95))} ms`;
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function short(value: number): string {
  return value < 10 ? value.toFixed(2) : value.toFixed(0);
}
