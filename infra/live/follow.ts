import { type Companion, Company } from "./company.ts";
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
   * Rows after a cursor, at most a page of them. A rejection ends the stream with that error; the reader comes back with
   * the last cursor it saw.
   */
  read(after: C): Promise<Page<T, C>>;
  /**
   * Names what a read at a cursor gives: followers of this topic who name the same share the read when they ask for it in
   * one turn. The name says the tenant, the cursor and whatever else the rows depend on. Without it nothing is shared.
   */
  share?(after: C): string;
  /** Look without a wake-up after this long, give or take a quarter; twice as long while wake-ups are healthy. */
  rereadMs?: number;
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

const END: IteratorResult<never> = Object.freeze({ done: true, value: undefined });

interface Waiter<T> {
  resolve(result: IteratorResult<T>): void;
  reject(error: unknown): void;
}

class Follower<T, C> implements AsyncIterableIterator<T>, Companion {
  readonly #options: FollowOptions<T, C>;
  /** Calls of `next` that have no answer yet, the oldest first. */
  readonly #waiters: Waiter<T>[] = [];
  #serving = false;
  #ended = false;
  #after: C;
  #rows: readonly T[] = [];
  #given = 0;
  #lastPage = false;
  /** There may be rows that have not been read. */
  #dirty = true;
  #company: Company | null = null;
  /** Ends the sleep; null while it does not sleep. */
  #awake: (() => void) | null = null;

  constructor(options: FollowOptions<T, C>) {
    this.#options = options;
    this.#after = options.after;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#ended) return Promise.resolve(END);
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

  wake(): void {
    this.#dirty = true;
    this.#awake?.();
  }

  /** Who does not sleep reads by itself, or has rows that its reader has not taken. */
  look(): void {
    if (this.#awake) this.wake();
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
    if (this.#company) return;
    open++;
    const { wakeups, topic, rereadMs = REREAD_MS } = this.#options;
    this.#company = Company.join(wakeups, topic, rereadMs, this);
  }

  async #read(): Promise<void> {
    this.#dirty = false; // before the read: a wake-up that comes during it counts
    try {
      const page = await this.#page(this.#after);
      if (this.#ended) return;
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

  #page(after: C): Promise<Page<T, C>> {
    const read = () => this.#options.read(after);
    const name = this.#options.share?.(after);
    if (name === undefined || !this.#company) return read();
    return this.#company.reads.read(name, read) as Promise<Page<T, C>>; // by its name it gives rows of this type
  }

  /** Until a wake-up, a look or the end. */
  #sleep(): Promise<void> {
    return new Promise((resolve) => {
      this.#awake = () => {
        this.#awake = null;
        resolve();
      };
    });
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#rows = [];
    this.#given = 0;
    if (this.#company) {
      this.#company.leave(this);
      this.#company = null;
      open--;
    }
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(END);
    this.#awake?.();
  }
}
