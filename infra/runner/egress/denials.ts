/** Host names of one guest that are counted one by one; further ones are counted together. */
const NAMES = 200;
const OTHERS = "(other)";
/** Pause between reports; it doubles with each, so that a guest that tries for days leaves few records. */
const FIRST_PAUSE_MS = 2_000;
const LAST_PAUSE_MS = 5 * 60_000;

/** Counts refused connections by host and reports the new ones now and then: a guest in a loop must not flood its record. */
export class Denials {
  readonly #report: (hostname: string, count: number) => void;
  readonly #seen = new Set<string>();
  readonly #fresh = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_PAUSE_MS;

  /** @param report told a host and how many refusals came since it was last told of */
  constructor(report: (hostname: string, count: number) => void) {
    this.#report = report;
  }

  count(hostname: string): void {
    const known = this.#seen.has(hostname) || this.#seen.size < NAMES;
    const name = known ? hostname.slice(0, 253).replace(/[^\x21-\x7e]/g, "?") : OTHERS;
    const first = !this.#seen.has(name);
    this.#seen.add(name);
    this.#fresh.set(name, (this.#fresh.get(name) ?? 0) + 1);
    if (first) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), this.#nextPauseMs());
  }

  #nextPauseMs(): number {
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(LAST_PAUSE_MS, pauseMs * 2);
    return pauseMs;
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [name, count] of this.#fresh) this.#report(name, count);
    this.#fresh.clear();
  }
}
