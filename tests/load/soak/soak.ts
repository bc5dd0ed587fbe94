import os from "node:os";
import { expect, test } from "vitest";
import { crashRounds } from "./crash-rounds.ts";
import type { LayoutTally } from "./layout-tally.ts";
import { type Plan, planned, type SoakOptions } from "./plan.ts";
import { growthPerHour } from "./slope.ts";
import { type HeldSample, mib, type SteadyTally, steadyLoad } from "./steady-load.ts";

/** Growth that a long run must stay below; in a short one the noise is larger than that. */
const MOST_GROWTH_BYTES_PER_HOUR = 8 * 1024 * 1024;
const LONG_HOURS = 0.5;
/** Growth per hour of what is counted: a leak at every use would be hundreds. */
const MOST_COUNTED_PER_HOUR = 30;

test("for hours, nothing that is killed loses work and nothing that lives grows", async () => {
  const plan = planned(JSON.parse(process.env.NODUS_SOAK!) as SoakOptions);
  plan.say(`soak with seed ${plan.seed}`);
  const [layouts, steady] = await Promise.all([crashRounds(plan), plan.only ? null : steadyLoad(plan)]);
  const failures = [...layouts.flatMap((tally) => tally.failures), ...(steady?.failures ?? [])];
  process.stdout.write(`\n${summary(plan, layouts, steady, failures).join("\n")}\n\n`);
  expect(failures).toEqual([]);
  if (steady) expectSteady(plan, steady);
});

function expectSteady(plan: Plan, { longestLetGoMs, samples }: SteadyTally): void {
  expect(longestLetGoMs).toBeLessThan(5_000);
  if (plan.hours < LONG_HOURS) return;
  const growth = (of: (sample: HeldSample) => number) =>
    growthPerHour(samples.map((sample) => ({ atMs: sample.atMs, value: of(sample) })));
  expect(growth((sample) => sample.bytes)).toBeLessThan(MOST_GROWTH_BYTES_PER_HOUR);
  for (const of of Object.values(COUNTED)) expect(growth(of)).toBeLessThan(MOST_COUNTED_PER_HOUR);
}

const COUNTED: Readonly<Record<string, (sample: HeldSample) => number>> = {
  handles: (sample) => sample.handles,
  "file descriptors": (sample) => sample.fileDescriptors,
  "database connections": (sample) => sample.connections,
};

function summary(plan: Plan, layouts: LayoutTally[], steady: SteadyTally | null, failures: string[]): string[] {
  return [
    `soak: ${plan.hours} h, seed ${plan.seed}, ${os.availableParallelism()} cores, Node ${process.version}`,
    ...layouts.flatMap((tally) => tally.lines()),
    ...(steady ? steadyLines(plan, steady) : []),
    ...failures.map((failure) => `failed: ${failure}`),
    verdict(failures.length, [
      ...layouts.filter((tally) => !tally.isTried).map((tally) => tally.layout),
      ...(steady?.runs === 0 ? ["steady load"] : []),
    ]),
  ];
}

/** A run that was too short for some of it shows nothing about that. */
function verdict(failures: number, untried: readonly string[]): string {
  if (failures > 0) return `${failures} failed`;
  return untried.length === 0 ? "nothing failed" : `nothing failed of what was tried; not tried: ${untried.join(", ")}`;
}

function steadyLines(plan: Plan, steady: SteadyTally): string[] {
  const openedMs = steady.longestOpenMs.toFixed(0);
  return [
    `steady load: ${steady.runs} uses, ${steady.failures.length} failed, ${steady.askedToRepeat} told to repeat`,
    `    ${steady.crowds} crowds of ${plan.streams} streams, all open within ${openedMs} ms and let go within ${steady.longestLetGoMs.toFixed(0)} ms`,
    grown("held after collection", steady.samples, (sample) => sample.bytes, mib, "MiB"),
    grown("resident", steady.samples, (sample) => sample.residentBytes, mib, "MiB"),
    ...Object.entries(COUNTED).map(([what, of]) => grown(what, steady.samples, of, String, "")),
  ];
}

function grown(
  what: string,
  samples: readonly HeldSample[],
  of: (sample: HeldSample) => number,
  show: (value: number) => string,
  unit: string,
): string {
  const values = samples.map(of);
  const growth = growthPerHour(samples.map((sample) => ({ atMs: sample.atMs, value: of(sample) })));
  const perHour = growth === null ? "too few samples" : `${show(Math.round(growth))} ${unit} an hour`;
  return `    ${what}: ${show(values[0] ?? 0)} to ${show(values.at(-1) ?? 0)} ${unit}, at most ${show(Math.max(0, ...values))}; grows ${perHour}`;
}
