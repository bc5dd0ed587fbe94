import { readFileSync } from "node:fs";
import { processTable, withDescendants } from "../support/process-table.ts";
import type { Rate } from "./bench-row.ts";

export interface Load {
  /** Calls under way at a time. */
  readonly lanes: number;
  readonly warmUpMs?: number;
  readonly measureMs?: number;
}

/** Calls `once` over and over in this process and counts; the processor time is this process's own. */
export async function rateOf(once: () => Promise<unknown>, load: Load): Promise<Rate> {
  const { lanes, warmUpMs = 2_000, measureMs = 3_000 } = load;
  await callFor(once, lanes, warmUpMs);
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  const calls = await callFor(once, lanes, measureMs);
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { perSecond: calls / seconds, cpuMicros: (user + system) / calls };
}

async function callFor(once: () => Promise<unknown>, lanes: number, ms: number): Promise<number> {
  const endAt = performance.now() + ms;
  let calls = 0;
  const lane = async () => {
    while (performance.now() < endAt) {
      await once();
      calls++;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return calls;
}

/** Times of single calls, one after another, in milliseconds. */
export async function timesOf(once: (turn: number) => unknown, turns: number, warmUp = 0): Promise<number[]> {
  const times: number[] = [];
  for (let turn = -warmUp; turn < turns; turn++) {
    const startedAt = performance.now();
    await once(turn + warmUp);
    if (turn >= 0) times.push(performance.now() - startedAt);
  }
  return times;
}

/** The kernel counts processor time in hundredths of a second. */
const TICK_MICROS = 10_000;

/** Processor time that a process has used, in microseconds; 0 once it is gone. */
export function cpuMicrosOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MICROS;
}

/** Memory that a process and everything below it hold alone or their share of, in MiB. */
export function memoryMib(pid: number): { own: number; below: number } {
  const table = processTable();
  const root = table.find((found) => found.pid === pid);
  if (!root) throw new Error(`there is no process ${pid}`);
  const below = withDescendants([root], table).filter((found) => found.pid !== pid);
  return { own: residentMib(pid), below: below.reduce((sum, found) => sum + residentMib(found.pid), 0) };
}

/** Resident memory in MiB. */
export function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib ?? 0) / 1024;
}
