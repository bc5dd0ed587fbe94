import { beyond, GATEWAY } from "./refusals.ts";
import type { Opened, Result } from "./request.ts";
import { isStream, type Stream } from "./stream.ts";

/** What the operations of one socket may come to together. */
export interface SocketOperationLimits {
  /** Operations that run at once, those included whose client has completed them before they were open. */
  readonly operations: number;
  /** Bytes of the messages that began them: a stream keeps its message until it ends. */
  readonly bytes: number;
}

/** The operations of one socket that have begun and are not over, whatever its client believes of them. */
export class SocketOperations {
  readonly #limits: SocketOperationLimits;
  #running = 0;
  #bytes = 0;

  constructor(limits: SocketOperationLimits) {
    this.#limits = limits;
  }

  /** Counts an operation until it is over; `refuseBeyond` says whether it was one too many. */
  begin(messageBytes: number): SocketOperation {
    this.#running++;
    this.#bytes += messageBytes;
    return new SocketOperation(() => {
      this.#running--;
      this.#bytes -= messageBytes;
    });
  }

  /** Throws `too_many_operations` or `operations_too_large` while more has begun than may run. */
  refuseBeyond(): void {
    const { operations, bytes } = this.#limits;
    if (this.#running > operations) throw beyond(GATEWAY.too_many_operations, operations, this.#running);
    if (this.#bytes > bytes) throw beyond(GATEWAY.operations_too_large, bytes, this.#bytes);
  }
}

/**
 * One operation as the protocol's server sees it. That server knows operations by the ids that clients give them, and a
 * client may give the id of one that it has completed to another one at once. So what a client has completed must say
 * nothing more, not even that it has ended: the server would take that for the word of whoever has the id now. Promises
 * of a completed operation therefore never settle; nothing holds them, and they go with it.
 */
export class SocketOperation {
  readonly #gone = new AbortController();
  readonly #onOver: (() => void)[];
  #isOver = false;

  constructor(onOver: () => void) {
    this.#onOver = [onOver];
  }

  /** Aborts when the client completes the operation or goes. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** Stands for the operation until it is open: closing it is how the server says that the client has completed it. */
  readonly opening: Stream<never> = {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => unsettled(),
    return: async () => {
      this.#gone.abort();
      return { done: true, value: undefined };
    },
  };

  /** The operation has ended, or never began; it is counted no longer. */
  over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const act of this.#onOver) act();
  }

  /** Calls `act` once the operation is over. */
  whenOver(act: () => void): void {
    if (this.#isOver) act();
    else this.#onOver.push(act);
  }

  /** The answer, or nothing ever once the client has completed the operation. */
  unlessGone<T>(answer: T): T | Promise<T> {
    return this.#gone.signal.aborted ? unsettled<T>() : answer;
  }

  /** What the server is told of the operation's result, or of the stream of its results. */
  async answer(work: Promise<Opened>): Promise<Opened> {
    try {
      const answer = await work;
      if (isStream(answer)) return this.unlessGone(this.#stream(answer as Stream<Result>));
      this.over();
      return this.unlessGone(answer);
    } catch (error) {
      this.over();
      throw error;
    }
  }

  #stream(source: Stream<Result>): Stream<Result> {
    const close = async (): Promise<IteratorResult<Result>> => {
      this.#gone.abort();
      try {
        return await source.return();
      } finally {
        this.over();
      }
    };
    if (this.#gone.signal.aborted) void close();
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: async () => {
        try {
          const item = await source.next();
          if (item.done) this.over();
          return this.unlessGone(item);
        } catch (error) {
          this.over();
          throw error;
        }
      },
      return: close,
    };
  }
}

function unsettled<T>(): Promise<T> {
  return new Promise(() => {});
}
