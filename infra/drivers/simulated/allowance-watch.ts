import type { Clock } from "../../kernel/clock.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { Allowance, KilledBy } from "../../runner/protocol.ts";

/** How far a guest may still live, as intake last said, judged by the host's own clock. */
export class AllowanceWatch {
  readonly #clock: Clock;
  #allowance: { given: Allowance; atMs: number } | null = null;
  /** When `open` or `resume` was sent. */
  #openingSentMs = 0;
  /** When beats without an answer were sent, by number; the oldest first. */
  readonly #openBeats = new Map<number, number>();
  /** From when the lease counts: the sending of what intake answered last. */
  #leaseFromMs = 0;
  #changed = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A session is asked for; beats of an earlier stream get no answer any more. */
  openingSent(): void {
    this.#openBeats.clear();
    this.#openingSentMs = this.#clock.monotonicMs();
  }

  beatSent(beat: number): void {
    this.#openBeats.set(beat, this.#clock.monotonicMs());
  }

  /** The answer to `open` or `resume`. */
  opened(given: Allowance): void {
    this.#allow(given, this.#openingSentMs);
  }

  /** A `want`: the answer to a beat (the oldest open one unless it says which), or, for null, a change that renews no lease. */
  wanted(given: Allowance, beat: number | null | undefined): void {
    const number = beat === undefined ? this.#openBeats.keys().next().value : beat;
    const sentMs = this.#openBeats.get(number ?? -1) ?? null;
    for (const open of this.#openBeats.keys()) if (open <= (number ?? -1)) this.#openBeats.delete(open);
    this.#allow(given, sentMs);
  }

  #allow(given: Allowance, leaseFromMs: number | null): void {
    this.#allowance = { given, atMs: this.#clock.monotonicMs() };
    if (leaseFromMs !== null) this.#leaseFromMs = leaseFromMs;
    this.#changed();
  }

  /** Resolves with the reason when the guest must end before its command does; null when `stop` aborts first. */
  async over(runningSinceMs: number, stop: AbortSignal): Promise<KilledBy | null> {
    while (!stop.aborted) {
      const wanted = KILLER_OF[this.#allowance!.given.want];
      if (wanted) return wanted;
      const { atMs, by } = this.#latestEnd(runningSinceMs);
      const waitMs = atMs - this.#clock.monotonicMs();
      if (waitMs <= 0) return by;
      const changed = new AbortController();
      this.#changed = () => changed.abort();
      await this.#clock.sleep(waitMs, AbortSignal.any([stop, changed.signal]));
    }
    return null;
  }

  #latestEnd(runningSinceMs: number): { atMs: number; by: KilledBy } {
    const { given, atMs } = this.#allowance!;
    const ends: { atMs: number; by: KilledBy }[] = [
      { atMs: this.#leaseFromMs + given.leaseMs - LIMITS.leaseMarginMs, by: "lease" },
    ];
    if (given.deadlineMs !== null) ends.push({ atMs: atMs + given.deadlineMs, by: "deadline" });
    if (given.fundedRunMs !== null) ends.push({ atMs: runningSinceMs + given.fundedRunMs, by: "funding" });
    return ends.reduce((first, e) => (e.atMs < first.atMs ? e : first));
  }
}

const KILLER_OF: Record<Allowance["want"], KilledBy | null> = {
  run: null,
  cancel: "cancel",
  stop_budget: "funding",
  stop_deadline: "deadline",
  drain: "drain",
};
