/**
 * A stream of results as an iterator object. Never an async generator: a generator that waits for its source
 * cannot be closed before the source speaks again, so every silent stream would leak.
 */
export type Stream<T> = AsyncIterableIterator<T> & { return(): Promise<IteratorResult<T>> };

const ended = <T>(): IteratorResult<T> => ({ done: true, value: undefined });

/** Maps each item; closing it closes the source at once, even while an item is awaited. */
export function mapStream<A, B>(
  source: AsyncIterator<A>,
  map: (item: A) => B | Promise<B>,
  onEnd: () => void = () => {},
): Stream<B> {
  let over = false;
  const finish = () => {
    if (over) return;
    over = true;
    onEnd();
  };
  const close = async (): Promise<IteratorResult<B>> => {
    const wasOver = over;
    finish();
    if (!wasOver) await source.return?.();
    return ended<B>();
  };
  async function next(): Promise<IteratorResult<B>> {
    if (over) return ended();
    try {
      const item = await source.next();
      if (!item.done && !over) return { done: false, value: await map(item.value) };
      finish();
      return ended();
    } catch (error) {
      await close();
      throw error;
    }
  }
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: inTurn(next),
    return: close,
    throw: async (error) => {
      await close();
      throw error;
    },
  };
}

/** A stream whose source, should it fail, is followed by one last item that says so instead of a rejection. `last` may throw to reject all the same. */
export function lastOnError<T>(source: Stream<T>, last: (error: unknown) => T): Stream<T> {
  return {
    ...source,
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => source.next().catch((error: unknown) => ({ done: false, value: last(error) })), // the source has ended: the next call says so
  };
}

/** A stream that somebody else than its reader can end, with a last item. */
export interface EndableStream<T> extends Stream<T> {
  /** The reader gets `last` next, then the end; the source is closed at once. Does nothing after the end. */
  end(last: T): void;
}

/** Makes a stream endable from outside; a `next` that waits for the source is answered with the last item. */
export function endable<T>(source: AsyncIterator<T>, onEnd: () => void = () => {}): EndableStream<T> {
  let state: "open" | "ending" | "over" = "open";
  let last: T | undefined;
  let interrupt: () => void = () => {};
  // A fresh promise for each wait: racing against one that lives as long as the stream would keep every item's wait.
  const nextOrInterrupt = () =>
    new Promise<IteratorResult<T> | undefined>((resolve, reject) => {
      interrupt = () => resolve(undefined);
      source.next().then(resolve, reject);
    });
  const finish = () => {
    if (state === "over") return;
    state = "over";
    interrupt();
    onEnd();
  };
  const takeLast = (): IteratorResult<T> => {
    const value = last as T;
    last = undefined;
    finish();
    return { done: false, value };
  };
  async function next(): Promise<IteratorResult<T>> {
    if (state === "ending") return takeLast();
    if (state === "over") return ended();
    try {
      const item = await nextOrInterrupt();
      if ((state as string) === "ending") return takeLast();
      if (!item || item.done || (state as string) === "over") {
        finish();
        return ended();
      }
      return item;
    } catch (error) {
      finish();
      throw error;
    }
  }
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: inTurn(next),
    async return() {
      const wasOpen = state === "open";
      finish();
      if (wasOpen) await source.return?.();
      return ended();
    },
    async throw(error) {
      finish();
      await source.return?.();
      throw error;
    },
    end(item) {
      if (state !== "open") return;
      state = "ending";
      last = item;
      interrupt();
      source.return?.()?.catch(() => {}); // the reader hears of the end; a source that fails to close has no reader left
    },
  };
}

/** True for what a subscription gives when it could be opened. */
export function isStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

/** Calls of `next` one after another: results arrive in the order of the calls. */
function inTurn<T>(next: () => Promise<IteratorResult<T>>): () => Promise<IteratorResult<T>> {
  let turn: Promise<unknown> = Promise.resolve();
  return () => {
    const result = turn.then(next, next);
    turn = result.catch(() => {}); // the caller of that turn has the error
    return result;
  };
}
