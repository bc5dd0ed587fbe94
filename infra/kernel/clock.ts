/** Time as an argument. Commands read `now()` once; nothing below the composition root asks the machine. */
export interface Clock {
  now(): Date;
  /** Milliseconds that never go back; only differences mean something. */
  monotonicMs(): number;
  /** Resolves after `ms`, or at once when `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  sleep: async (ms, signal) => {
    for (let restMs = ms; restMs > 0 && !signal?.aborted; restMs -= LONGEST_TIMER_MS)
      await oneTimer(Math.min(restMs, LONGEST_TIMER_MS), signal);
  },
};

/** A timer set to more than this fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

function oneTimer(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal?.addEventListener("abort", wake, { once: true });
  });
}

/** A clock that moves only when told to; sleepers wake in order of their due time. */
export class FakeClock implements Clock {
  #nowMs: number;
  #steppedMs = 0;
  #sleepers: { dueMs: number; wake: () => void }[] = [];

  constructor(start: Date | string = "2026-01-01T00:00:00Z") {
    this.#nowMs = new Date(start).getTime();
  }

  now(): Date {
    return new Date(this.#nowMs + this.#steppedMs);
  }

  /** Sets the wall clock, as an operator or the end of a suspension does: no time passes and nobody wakes. */
  stepWall(ms: number): void {
    this.#steppedMs += ms;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted || ms <= 0) return resolve();
      const sleeper = { dueMs: this.#nowMs + ms, wake: () => resolve() };
      this.#sleepers.push(sleeper);
      signal?.addEventListener("abort", () => {
        this.#sleepers = this.#sleepers.filter((s) => s !== sleeper);
        resolve();
      });
    });
  }

  /** Moves time forward and wakes who is due, letting each run before time moves on. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      this.#sleepers.sort((a, b) => a.dueMs - b.dueMs);
      const next = this.#sleepers[0];
      if (!next || next.dueMs > untilMs) break;
      this.#sleepers.shift();
      this.#nowMs = next.dueMs;
      next.wake();
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    this.#nowMs = untilMs;
  }
}
