import type { Wakeups } from "./wakeups.ts";

/** What one read found. */
export interface Page<T, C> {
  /** Rows after the cursor, in order. */
  rows: readonly T[];
  /** Cursor of the last row, or the one that was asked for when there are none. */
  after: C;
  /** Nothing will follow these rows, ever. */
  done: boolean;
  /** The page was full: read again at once. */
  more: boolean;
}

export interface FollowOptions<T, C> {
  wakeups: Pick<Wakeups, "on" | "healthy">;
  /** Announced whenever there may be rows after the cursor. */
  topic: string;
  /** Where to begin: a number, or the values of a keyset. */
  after: C;
  /**
   * Rows after a cursor, at most a page of them. `signal` aborts when nobody waits for the answer any more.
   * A rejection ends the stream with that error; the reader comes back with the last cursor it saw.
   */
  read(after: C, signal: AbortSignal): Promise<Page<T, C>>;
  /** Look without a wake-up after this long, give or take a quarter; twice as long while wake-ups are healthy. */
  rereadMs?: number;
  /** A number in [0, 1), for the jitter. */
  random?: () => number;
}

const REREAD_MS = 2_000;

let open = 0;

/** How many followers of this process hold on to a topic; for tests and metrics. */
export function openFollowers(): number {
  return open;
}

/**
 * Rows after a cursor, then whatever comes, in order, without gap or repeat, until a page says that it is done.
 *
 * An iterator object and not a generator, because a generator that waits cannot be closed: here `return()` settles at
 * once, and so does a `next()` that is still waiting, on a silent stream too. At most one page is held, so a reader that
 * is slow slows only itself. Nothing is held before the first `next()` or after the end.
 */
export function follow<T, C>(options: FollowOptions<T, C>): AsyncIterableIterator<T> {
  return new Follower(options);
}

/** Time until a look without a wake-up: `random` spreads it over ±25 %, and it is doubled while wake-ups are healthy. */
export function lookAfterMs(rereadMs: number, healthy: boolean, random: () => number): number {
  return rereadMs * (healthy ? 2 : 1) * (0.75 + random() / 2);
}

const END: IteratorResult<never> = Object.freeze({ done: true, value: undefined });

interface Waiter<T> {
  resolve(result: IteratorResult<T>): void;
  reject(error: unknown): void;
}

class Follower<T, C> implements AsyncIterableIterator<T> {
  readonly #options: FollowOptions<T, C>;
  readonly #ended = new AbortController();
  /** Calls of `next` that have no answer yet, the oldest first. */
  readonly #waiters: Waiter<T>[] = [];
  #serving = false;
  #after: C;
  #rows: readonly T[] = [];
  #given = 0;
  #lastPage = false;
  /** There may be rows that have not been read. */
  #dirty = true;
  #stopListening: (() => void) | null = null;
  #wake: () => void = () => {};

  constructor(options: FollowOptions<T, C>) {
    this.#options = options;
    this.#after = options.after;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#ended.signal.aborted) return Promise.resolve(END);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      void this.#serve();
    });
  }

  async return(): Promise<IteratorResult<T>> {
    this.#finish();
    return END;
  }

  async throw(error: unknown): Promise<IteratorResult<T>> {
    this.#finish();
    throw error;
  }

  /** Answers the waiters one after another, reading or waiting where no row is at hand. */
  async #serve(): Promise<void> {
    if (this.#serving) return;
    this.#serving = true;
    this.#listen();
    while (this.#waiters.length > 0) {
      if (this.#given < this.#rows.length) this.#answer({ done: false, value: this.#rows[this.#given++] as T });
      else if (this.#lastPage) this.#finish();
      else if (this.#dirty) await this.#read();
      else await this.#sleep();
    }
    this.#serving = false;
  }

  #answer(result: IteratorResult<T>): void {
    this.#waiters.shift()?.resolve(result);
  }

  #listen(): void {
    if (this.#stopListening) return;
    open++;
    this.#stopListening = this.#options.wakeups.on(this.#options.topic, () => {
      this.#dirty = true;
      this.#wake();
    });
  }

  async #read(): Promise<void> {
    this.#dirty = false; // before the read: a wake-up that comes during it counts
    try {
      const page = await this.#options.read(this.#after, this.#ended.signal);
      if (this.#ended.signal.aborted) return;
      this.#rows = page.rows;
      this.#given = 0;
      this.#after = page.after;
      this.#lastPage = page.done;
      if (page.more) this.#dirty = true;
    } catch (error) {
      this.#waiters.shift()?.reject(error); // there is none when the end was asked for meanwhile
      this.#finish();
    }
  }

  /** Until a wake-up, the end, or the time for a look without one. */
  #sleep(): Promise<void> {
    const { rereadMs = REREAD_MS, random = Math.random, wakeups } = this.#options;
    return new Promise((resolve) => {
      const timer = setTimeout(
        () => {
          this.#dirty = true;
          this.#wake();
        },
        lookAfterMs(rereadMs, wakeups.healthy, random),
      );
      timer.unref();
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = () => {};
        resolve();
      };
    });
  }

  #finish(): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    this.#rows = [];
    this.#given = 0;
    if (this.#stopListening) {
      this.#stopListening();
      this.#stopListening = null;
      open--;
    }
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(END);
    this.#wake();
  }
}
