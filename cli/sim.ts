import type { WriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { finished } from "node:stream/promises";
import { type Happenings, sumOf } from "../roles/simulation/happenings.ts";
import type { Simulated } from "../roles/simulation/simulate.ts";
import { ClientError } from "./client.ts";
import { SimWorker } from "./sim-worker.ts";

export interface SimOptions {
  seed: number;
  seeds: number;
  jobs: number | "cores";
  days?: number;
  hours?: number;
  trace?: string;
}

const HOUR_MS = 3_600_000;

/**
 * Lives through simulated worlds, one for each seed, several side by side in processes of their own; stops at the first
 * in which something is not as it must be.
 */
export async function sim(options: SimOptions): Promise<void> {
  const { seed: first, seeds: count, days, hours = 1 } = options;
  const durationMs = (days === undefined ? hours : days * 24) * HOUR_MS;
  const jobs = Math.min(count, options.jobs === "cores" ? availableParallelism() : options.jobs);
  if (options.trace && jobs > 1) throw new ClientError("--trace writes down one world at a time: leave --jobs out.");
  const interrupted = new AbortController();
  const trace = options.trace ? await traceFile(options.trace) : null;
  trace?.on("error", (error) => interrupted.abort(unwritable(options.trace!, error))); // such as a disk that is full
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => interrupted.abort(new ClientError(`${signal}: the simulation was ended.`)));
  const tally = new Tally();
  let next = first;
  try {
    await together(jobs, interrupted, async () => {
      const worker = new SimWorker(durationMs, trace ? lineTo(trace) : null);
      const end = () => worker.end();
      interrupted.signal.addEventListener("abort", end);
      try {
        while (next < first + count && !interrupted.signal.aborted) {
          const { simulated, tookMs } = await worker.live(next++);
          process.stdout.write(`${lineOf(simulated, tookMs)}\n`);
          tally.add(simulated);
        }
      } finally {
        interrupted.signal.removeEventListener("abort", end);
        await worker.end();
      }
    });
  } finally {
    trace?.end();
    if (trace && !trace.errored) await finished(trace);
    if (tally.seeds > 1 || interrupted.signal.aborted) process.stdout.write(`${tally.text()}\n`);
  }
}

/** Runs `work` so many times side by side; the first that fails ends all, and is what is thrown once all have ended. */
async function together(times: number, interrupted: AbortController, work: () => Promise<void>): Promise<void> {
  const all = Array.from({ length: times }, () => work().catch((error: Error) => interrupted.abort(error)));
  await Promise.all(all);
  interrupted.signal.throwIfAborted();
}

async function traceFile(file: string): Promise<WriteStream> {
  try {
    return (await open(file, "w")).createWriteStream();
  } catch (error) {
    throw unwritable(file, error as Error);
  }
}

function unwritable(file: string, error: Error): ClientError {
  return new ClientError(`--trace ${file}: the file cannot be written (${error.message}).`);
}

function lineTo(trace: WriteStream): (line: string) => void {
  return (line) => void trace.write(`${line}\n`);
}

/** Adds up what was lived through. */
class Tally {
  seeds = 0;
  readonly #startedMs = performance.now();
  #simulatedMs = 0;
  #workloads = 0;
  #operations = 0;
  #looks = 0;
  readonly #ends = new Map<string, number>();
  readonly #events = new Map<string, number>();
  #happenings: Happenings = {};

  add({ simulatedMs, workloads, operations, looks, ends, events, happenings }: Simulated): void {
    this.seeds++;
    this.#simulatedMs += simulatedMs;
    this.#workloads += workloads;
    this.#operations += operations;
    this.#looks += looks.near + looks.full;
    for (const [end, times] of Object.entries(ends)) this.#ends.set(end, (this.#ends.get(end) ?? 0) + times);
    for (const [type, times] of Object.entries(events)) this.#events.set(type, (this.#events.get(type) ?? 0) + times);
    this.#happenings = sumOf([this.#happenings, happenings]);
  }

  text(): string {
    const seconds = (performance.now() - this.#startedMs) / 1000;
    const hours = (this.#simulatedMs / HOUR_MS).toFixed(1);
    return [
      `${this.seeds} seeds, ${hours} h in ${seconds.toFixed(1)} s: ${this.#workloads} workloads, ` +
        `${this.#operations} operations, ${this.#looks} looks`,
      `ends: ${listOf([...this.#ends])}`,
      `events: ${listOf([...this.#events])}`,
      ...Object.entries(this.#happenings).map(([part, counts]) => `${part}: ${listOf(Object.entries(counts))}`),
    ].join("\n");
  }
}

function listOf(counts: [name: string, times: number][]): string {
  return counts
    .toSorted(([, a], [, b]) => b - a)
    .map(([name, times]) => `${times} ${name}`)
    .join(", ");
}

function lineOf({ seed, hash, workloads, operations, looks, simulatedMs, ends }: Simulated, tookMs: number): string {
  const hours = (simulatedMs / HOUR_MS).toFixed(1);
  return (
    `seed ${seed}: ${hours} h, ${workloads} workloads (${listOf(Object.entries(ends))}), ${operations} operations, ` +
    `${looks.near} near and ${looks.full} full looks in ${(tookMs / 1000).toFixed(1)} s, trace ${hash}`
  );
}
