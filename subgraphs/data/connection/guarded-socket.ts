import { Socket } from "node:net";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { guardedLookup } from "../../../infra/net/guarded-lookup.ts";
import type { PrivateExceptions } from "../../../infra/net/public-address.ts";

/** How often a socket that is watched is looked at. */
const LOOK_MS = 20;

/** The other side sent more than anybody needs to say before a login. */
export class TooTalkative extends Error {
  override readonly name = "TooTalkative";
}

/** A socket that connects only to addresses that a tenant may reach. */
export class GuardedSocket extends Socket {
  readonly #exceptions: PrivateExceptions;

  constructor(exceptions: PrivateExceptions) {
    super();
    this.#exceptions = exceptions;
  }

  /** As the PostgreSQL driver calls it. */
  override connect(...args: unknown[]): this {
    const [port, host] = args as [number, string];
    return super.connect({ port, host, lookup: guardedLookup(this.#exceptions) });
  }

  /**
   * Cuts the line when more than `maxBytes` arrive while `work` is going on: the driver keeps a message in memory until
   * its end, however long the server says that it is.
   */
  async limit<T>(maxBytes: number, clock: Pick<Clock, "sleep">, work: Promise<T>): Promise<T> {
    const finished = new AbortController();
    const watch = async () => {
      while (!finished.signal.aborted) {
        await clock.sleep(LOOK_MS, finished.signal);
        if (this.bytesRead > maxBytes && !finished.signal.aborted) return void this.destroy(new TooTalkative());
      }
    };
    void watch();
    try {
      return await work;
    } finally {
      finished.abort();
    }
  }
}
