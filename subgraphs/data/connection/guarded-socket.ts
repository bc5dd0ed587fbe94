import { Socket } from "node:net";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { guardedLookup } from "../../../infra/net/guarded-lookup.ts";
import type { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { guardListeners } from "./guard-listeners.ts";
import { ProtocolViolation } from "./message-guard.ts";

/** How often a socket that is watched is looked at. */
const LOOK_MS = 20;

/** A socket that connects only to addresses that a tenant may reach, and that outlives no error of its listeners. */
export class GuardedSocket extends Socket {
  readonly #exceptions: PrivateExceptions;

  constructor(exceptions: PrivateExceptions) {
    super();
    this.#exceptions = exceptions;
    guardListeners(this);
  }

  /** As the PostgreSQL driver calls it. */
  override connect(...args: unknown[]): this {
    const [port, host] = args as [number, string];
    return super.connect({ port, host, lookup: guardedLookup(this.#exceptions) });
  }

  /**
   * Cuts the line when more than `maxBytes` arrive while `work` is going on: so also what TLS itself has
   * to say is bounded, which nobody sees as messages.
   */
  async limit<T>(maxBytes: number, clock: Pick<Clock, "sleep">, work: Promise<T>): Promise<T> {
    const finished = new AbortController();
    const watch = async () => {
      while (!finished.signal.aborted) {
        await clock.sleep(LOOK_MS, finished.signal);
        if (this.bytesRead > maxBytes && !finished.signal.aborted)
          return void this.destroy(new ProtocolViolation("much before a login"));
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
