/**
 * Connections whose peers have not shown who they are. There are at most so many of them: the oldest gives way to the
 * newest, so that whoever is about to show it gets in, however many others never do.
 */
export class Newcomers {
  readonly #limit: number;
  /** Oldest first. */
  readonly #waiting = new Set<{ readonly giveWay: () => void }>();

  /** `limit` is the most of them, at least 1. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get count(): number {
    return this.#waiting.size;
  }

  /**
   * Counts a newcomer until what it gives back is called: its peer is known now, or gone. `giveWay` must end the
   * connection; it is called at most once.
   */
  enter(giveWay: () => void): () => void {
    const [oldest] = this.#waiting;
    if (oldest && this.#waiting.size >= this.#limit) {
      this.#waiting.delete(oldest);
      oldest.giveWay();
    }
    const newcomer = { giveWay };
    this.#waiting.add(newcomer);
    return () => void this.#waiting.delete(newcomer);
  }
}
