import { LIMITS } from "../../kernel/limits.ts";
import type { Allowance, KilledBy, Want } from "../protocol.ts";

/** How a guest is to end: at once, or with a chance to save its work. */
export interface Stop {
  killedBy: KilledBy;
  graceful: boolean;
}

const STOPS: Record<Exclude<Want, "run">, Stop> = {
  cancel: { killedBy: "cancel", graceful: true },
  drain: { killedBy: "drain", graceful: true },
  stop_budget: { killedBy: "funding", graceful: false },
  stop_deadline: { killedBy: "deadline", graceful: false },
};

/** Kept between a guest's end and the instant that it must have ended by; a tenth of very short spans. */
function marginMs(spanMs: number): number {
  return Math.min(LIMITS.leaseMarginMs, spanMs / 10);
}

/**
 * How long one guest may live, on the host's monotonic clock. Pure: the caller tells the time.
 * A want never goes back to `run`, a deadline never moves away; lease and funding follow the latest frame.
 */
export class Allowances {
  #want: Want = "run";
  #leaseUntilMs: number;
  #leaseStartMs: number;
  #deadlineAtMs: number | null = null;
  #fundedRunMs: number | null = null;
  #runningSinceMs: number | null = null;

  /** @param askedAtMs when the host sent what the first allowance answers */
  constructor(first: Allowance, askedAtMs: number, nowMs: number) {
    this.#leaseStartMs = askedAtMs;
    this.#leaseUntilMs = askedAtMs + first.leaseMs - marginMs(first.leaseMs);
    this.#take(first, nowMs);
  }

  /**
   * @param askedAtMs when the host sent what this answers; null for an allowance that nobody asked for: it tells a want
   *   but proves no fresh contact, since it may have lain in a buffer while this machine was suspended.
   */
  update(allowance: Allowance, askedAtMs: number | null, nowMs: number): void {
    if (askedAtMs !== null && askedAtMs >= this.#leaseStartMs) {
      this.#leaseStartMs = askedAtMs;
      this.#leaseUntilMs = askedAtMs + allowance.leaseMs - marginMs(allowance.leaseMs);
    }
    this.#take(allowance, nowMs);
  }

  startRunning(nowMs: number): void {
    this.#runningSinceMs = nowMs;
  }

  /** What must be done now; null while the guest may go on. */
  stopAt(nowMs: number): Stop | null {
    const due = this.#limits().find((limit) => limit.atMs <= nowMs);
    if (due) return { killedBy: due.killedBy, graceful: false };
    return this.#want === "run" ? null : STOPS[this.#want];
  }

  /** When `stopAt` is to be asked again, if nothing is heard before. */
  nextCheckMs(): number {
    return Math.min(...this.#limits().map((limit) => limit.atMs));
  }

  #take(allowance: Allowance, nowMs: number): void {
    if (this.#want === "run") this.#want = allowance.want;
    this.#fundedRunMs = allowance.fundedRunMs;
    // Counted from its arrival, the deadline can only seem later than it is: the earliest one heard of is the truest.
    if (allowance.deadlineMs !== null)
      this.#deadlineAtMs = Math.min(this.#deadlineAtMs ?? Number.POSITIVE_INFINITY, nowMs + allowance.deadlineMs);
  }

  /** In the order of their time. */
  #limits(): { atMs: number; killedBy: KilledBy }[] {
    const limits: { atMs: number; killedBy: KilledBy }[] = [{ atMs: this.#leaseUntilMs, killedBy: "lease" }];
    if (this.#deadlineAtMs !== null) limits.push({ atMs: this.#deadlineAtMs, killedBy: "deadline" });
    if (this.#fundedRunMs !== null && this.#runningSinceMs !== null) {
      limits.push({
        atMs: this.#runningSinceMs + this.#fundedRunMs - marginMs(this.#fundedRunMs),
        killedBy: "funding",
      });
    }
    return limits.sort((a, b) => a.atMs - b.atMs);
  }
}
