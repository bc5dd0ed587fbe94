import { createWriteStream } from "node:fs";
import { finished } from "node:stream/promises";
import { type Simulated, simulateExactly } from "../roles/simulation/simulate.ts";
import { throwAwayDatabase } from "../roles/simulation/simulation-database.ts";
import { ClientError } from "./client.ts";

export interface SimOptions {
  seed: string;
  seeds: string;
  days?: string;
  hours?: string;
  trace?: string;
}

const HOUR_MS = 3_600_000;

/** Lives through simulated worlds, one for each seed; stops at the first in which something is not as it must be. */
export async function sim(options: SimOptions): Promise<void> {
  const first = wholeNumber("--seed", options.seed);
  const count = wholeNumber("--seeds", options.seeds);
  const durationMs = (amount("--days", options.days) * 24 + amount("--hours", options.hours)) * HOUR_MS || HOUR_MS;
  const trace = options.trace ? createWriteStream(options.trace) : null;
  const { database, close } = await throwAwayDatabase();
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => interrupted.abort(new ClientError(`${signal}: the simulation was ended.`)));
  try {
    const startedMs = performance.now();
    for (let seed = first; seed < first + count; seed++) {
      const seedStartedMs = performance.now();
      const listen = trace ? (line: string) => void trace.write(`${line}\n`) : undefined;
      const simulated = await simulateExactly({ database, seed, durationMs, listen, signal: interrupted.signal });
      process.stdout.write(`${lineOf(simulated, performance.now() - seedStartedMs)}\n`);
    }
    const seconds = (performance.now() - startedMs) / 1000;
    if (count > 1)
      process.stdout.write(`${count} seeds in ${seconds.toFixed(1)} s: ${(count / seconds).toFixed(2)} a second\n`);
  } finally {
    trace?.end();
    if (trace) await finished(trace);
    await close();
  }
}

function lineOf({ seed, hash, workloads, operations, looks, simulatedMs, ends }: Simulated, tookMs: number): string {
  const hours = (simulatedMs / HOUR_MS).toFixed(1);
  const how = Object.entries(ends)
    .map(([end, times]) => `${times} ${end}`)
    .join(", ");
  return (
    `seed ${seed}: ${hours} h, ${workloads} workloads (${how}), ${operations} operations, ` +
    `${looks.near} near and ${looks.full} full looks in ${(tookMs / 1000).toFixed(1)} s, trace ${hash}`
  );
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0) throw new ClientError(`${name} is a whole number, not ${text}.`);
  return number;
}

function amount(name: string, text: string | undefined): number {
  if (text === undefined) return 0;
  const number = Number(text);
  if (!(number > 0) || !Number.isFinite(number)) throw new ClientError(`${name} is a number above 0, not ${text}.`);
  return number;
}
