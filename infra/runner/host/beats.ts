/** Beats that intake may leave unanswered before the oldest are forgotten. */
const OPEN_BEATS = 100;

/** When beats were sent, so that an answer proves contact at the time of its question and not of its arrival. */
export class Beats {
  readonly #sentAtMs = new Map<number, number>();
  #last = 0;

  /** @returns the number of a new beat */
  send(nowMs: number): number {
    this.#last++;
    this.#sentAtMs.set(this.#last, nowMs);
    if (this.#sentAtMs.size > OPEN_BEATS) this.#sentAtMs.delete(this.#last - OPEN_BEATS);
    return this.#last;
  }

  /**
   * When the answered beat was sent; null for what answers none.
   * @param beat as the answer says; undefined from an intake that does not say: then the oldest open one
   */
  answered(beat: number | null | undefined): number | null {
    const number = beat === undefined ? this.#sentAtMs.keys().next().value : beat;
    const sentAtMs = number === null || number === undefined ? undefined : this.#sentAtMs.get(number);
    if (sentAtMs === undefined) return null;
    for (const open of this.#sentAtMs.keys()) if (open <= number!) this.#sentAtMs.delete(open);
    return sentAtMs;
  }

  /** The connection is lost, and with it every answer. */
  forget(): void {
    this.#sentAtMs.clear();
  }
}
