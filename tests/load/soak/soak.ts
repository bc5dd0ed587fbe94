import os from "node:os";
import { expect, test } from "vitest";
import { type CrashTally, crashRounds } from "./crash-rounds.ts";
import { type Plan, planned } from "./plan.ts";
import { growthPerHour } from "./slope.ts";
import { type HeldSample, mib, type SteadyTally, steadyLoad } from "./steady-load.ts";

/** Growth that a long run must stay below; in a short one the noise is larger than that. */
const MOST_GROWTH_BYTES_PER_HOUR = 8 * 1024 * 1024;
const LONG_HOURS = 0.5;

test("for hours, nothing that is killed loses work and nothing that lives grows", async () => {
  const plan = planned();
  plan.say(`soak of ${plan.hours} h with seed ${plan.seed}`);
  const [crashes, steady] = await Promise.all([crashRounds(plan), steadyLoad(plan)]);
  process.stdout.write(`\n${summary(plan, crashes, steady).join("\n")}\n\n`);
  expect([...crashes.failures, ...steady.failures]).toEqual([]);
  expect(steady.longestLetGoMs).toBeLessThan(5_000);
  const growth = growthPerHour(steady.samples.map(({ atMs, bytes }) => ({ atMs, value: bytes })));
  if (plan.hours >= LONG_HOURS) expect(growth).toBeLessThan(MOST_GROWTH_BYTES_PER_HOUR);
});

function summary(plan: Plan, crashes: CrashTally, steady: SteadyTally): string[] {
  const victims = [...crashes.byVictim].map(([name, count]) => `${name} ${count}`).join(", ");
  return [
    `soak: ${plan.hours} h, seed ${plan.seed}, ${os.availableParallelism()} cores, Node ${process.version}`,
    `killed: ${crashes.rounds} rounds (${victims}), ${crashes.missed} of them in quiet`,
    `        ${crashes.workloads} workloads in ${crashes.generations} generations, ${crashes.failures.length} rounds failed`,
    `steady: ${steady.runs} uses, ${steady.failures.length} failed, ${steady.askedToRepeat} told to repeat; ${steady.crowds} crowds of ${plan.streams} streams, all let go within ${steady.longestLetGoMs.toFixed(0)} ms`,
    grown("held after collection", steady.samples, (s) => s.bytes, mib, "MiB"),
    grown("resident", steady.samples, (s) => s.residentBytes, mib, "MiB"),
    grown("handles", steady.samples, (s) => s.handles, String, ""),
    grown("file descriptors", steady.samples, (s) => s.fileDescriptors, String, ""),
    ...[...crashes.failures, ...steady.failures].map((failure) => `failed: ${failure}`),
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
  return `        ${what}: ${show(values[0] ?? 0)} to ${show(values.at(-1) ?? 0)} ${unit}, at most ${show(Math.max(0, ...values))}; grows ${perHour}`;
}
