import type { Clock } from "../../infra/kernel/clock.ts";

interface Sleeper {
  dueMs: number;
  /** Breaks ties: who fell asleep first wakes first. */
  number: number;
  owner: object;
  wake(): void;
}

/** Whose clock a part of the world looks at. */
export interface ClockView {
  /** Sleeps of an owner that is forgotten never end. */
  owner: object;
  /** Sees the steps that the platform's wall clock makes. */
  stepped: boolean;
  /** How far its wall clock is off, milliseconds. */
  skewMs?: number;
}

/** The one clock of a simulated world. It stands still until somebody wakes the next sleeper, one at a time. */
export class SimClock {
  #nowMs: number;
  #steppedMs = 0;
  #highestWallMs = Number.NEGATIVE_INFINITY;
  #count = 0;
  /** A binary heap, the next sleeper first. */
  readonly #heap: Sleeper[] = [];
  readonly #forgotten = new WeakSet<object>();

  constructor(start: Date) {
    this.#nowMs = start.getTime();
  }

  /** True time, which no step changes. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** The platform's wall clock. */
  wall(): Date {
    return new Date(this.#nowMs + this.#steppedMs);
  }

  /** The latest that the platform's wall clock has shown, before it was set back. */
  highestWall(): Date {
    return new Date(Math.max(this.#highestWallMs, this.wall().getTime()));
  }

  /** How far the platform's wall clock is from true time. */
  get steppedMs(): number {
    return this.#steppedMs;
  }

  stepWall(ms: number): void {
    this.#highestWallMs = this.highestWall().getTime();
    this.#steppedMs += ms;
  }

  view({ owner, stepped, skewMs = 0 }: ClockView): Clock {
    return {
      now: () => new Date(this.#nowMs + skewMs + (stepped ? this.#steppedMs : 0)),
      monotonicMs: () => this.#nowMs,
      sleep: (ms, signal) => this.#sleep(owner, ms, signal),
    };
  }

  /** What sleeps for this owner sleeps for ever. */
  forget(owner: object): void {
    this.#forgotten.add(owner);
  }

  /** When the next sleeper is due, in true time; infinite when nobody sleeps. */
  nextDueMs(): number {
    this.#dropDead();
    return this.#heap[0]?.dueMs ?? Number.POSITIVE_INFINITY;
  }

  /** Moves time to the next sleeper and wakes it. */
  wakeNext(): void {
    this.#dropDead();
    const next = pop(this.#heap);
    if (!next) return;
    this.#nowMs = Math.max(this.#nowMs, next.dueMs);
    next.wake();
  }

  #sleep(owner: object, ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (this.#forgotten.has(owner)) return;
      if (signal?.aborted || ms <= 0) return resolve();
      const sleeper: Sleeper = {
        dueMs: this.#nowMs + Math.ceil(ms),
        number: this.#count++,
        owner,
        wake: () => {
          signal?.removeEventListener("abort", abort);
          resolve();
        },
      };
      const abort = () => {
        sleeper.owner = GONE;
        if (!this.#forgotten.has(owner)) resolve();
      };
      signal?.addEventListener("abort", abort, { once: true });
      push(this.#heap, sleeper);
    });
  }

  #dropDead(): void {
    while (this.#heap[0] && (this.#heap[0].owner === GONE || this.#forgotten.has(this.#heap[0].owner))) pop(this.#heap);
  }
}

/** Owner of sleeps that have ended early. */
const GONE = {};

function before(a: Sleeper, b: Sleeper): boolean {
  return a.dueMs === b.dueMs ? a.number < b.number : a.dueMs < b.dueMs;
}

function push(heap: Sleeper[], sleeper: Sleeper): void {
  let at = heap.push(sleeper) - 1;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (!before(sleeper, heap[parent]!)) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = sleeper;
}

function pop(heap: Sleeper[]): Sleeper | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (!first || !last || first === last) return first;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
    if (!before(heap[child]!, last)) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = last;
  return first;
}
