/** Looks of different topics that come due within this long happen together, so that one statement can serve them all. */
const TICK_MS = 250;

/** Time until a look without a wake-up: `random` spreads it over ±25 %, and it is doubled while wake-ups are healthy. */
export function lookAfterMs(rereadMs: number, healthy: boolean, random: () => number): number {
  return rereadMs * (healthy ? 2 : 1) * (0.75 + random() / 2);
}

/** Calls each of many at its own time, in ticks: who is due at the same tick is called in the same turn of the event loop. */
export class Looks {
  readonly #due = new Map<number, Set<() => void>>();
  #tick = 0;
  #timer: NodeJS.Timeout | null = null;

  /** Calls `look` once, at the first tick after so long. Returns what takes it back. Keeps no process alive. */
  after(ms: number, look: () => void): () => void {
    const tick = this.#tick + Math.max(1, Math.ceil(ms / TICK_MS));
    const together = this.#due.get(tick) ?? new Set();
    this.#due.set(tick, together.add(look));
    this.#timer ??= setInterval(() => this.#next(), TICK_MS).unref();
    return () => {
      if (together.delete(look) && together.size === 0 && this.#due.get(tick) === together) this.#forget(tick);
    };
  }

  #next(): void {
    const due = this.#due.get(++this.#tick);
    if (!due) return;
    this.#due.delete(this.#tick); // before the calls: what they ask for is of a later tick
    for (const look of due) look();
    if (this.#due.size === 0) this.#rest();
  }

  #forget(tick: number): void {
    this.#due.delete(tick);
    if (this.#due.size === 0) this.#rest();
  }

  #rest(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }
}
