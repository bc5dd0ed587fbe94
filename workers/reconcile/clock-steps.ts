import type { Clock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";

/**
 * Notices that the wall clock was set: by an operator, by time synchronisation, or because the machine slept. Instants
 * that were written before then seem to be over although no time passed for those who are to act on them.
 */
export class ClockSteps {
  readonly #clock: Clock;
  #aheadMs: number;
  /** A step just before anybody looked is as likely as one now. */
  #steppedAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#aheadMs = aheadMs(clock);
    this.#steppedAtMs = clock.monotonicMs();
  }

  /**
   * Monotonic milliseconds for which no step was noticed: since the last one, or since this began to look. A clock that
   * is only slewed never steps, as long as this is asked every few seconds.
   */
  sinceStepMs(): number {
    const ahead = aheadMs(this.#clock);
    if (Math.abs(ahead - this.#aheadMs) > LIMITS.clockStepMs) this.#steppedAtMs = this.#clock.monotonicMs();
    this.#aheadMs = ahead;
    return this.#clock.monotonicMs() - this.#steppedAtMs;
  }
}

/** The wall clock's lead over the monotonic one; only its changes mean something. */
function aheadMs(clock: Clock): number {
  return clock.now().getTime() - clock.monotonicMs();
}
