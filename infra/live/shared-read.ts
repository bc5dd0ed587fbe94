/**
 * Reads of the same thing that are asked for in the same turn of the event loop are done once: one wake-up wakes all of a
 * topic's followers in one turn. The read begins after the turn, so each caller gets what was there after it asked.
 */
export class SharedReads<T> {
  readonly #open = new Map<string, Promise<T>>();

  /** `read` must give every caller of this key the same; of those that share a turn one is called. */
  read(key: string, read: () => Promise<T>): Promise<T> {
    const open = this.#open.get(key);
    if (open) return open;
    const shared = nextTurn().then(() => {
      this.#open.delete(key); // from here on it may be too old for somebody
      return read();
    });
    this.#open.set(key, shared);
    return shared;
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
