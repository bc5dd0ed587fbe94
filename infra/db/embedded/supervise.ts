import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../telemetry/logger.ts";
import { logTail, type Postmaster, shutDown } from "./postmaster.ts";

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
/** A server that ran this long had a fault of its own; its restart does not wait as one in a row of failures does. */
const HEALTHY_AFTER_MS = 60_000;

/** A server that is started again, on the same port, whenever it dies. */
export interface Supervised {
  current(): Postmaster;
  /** Stops the server; resolves when its process is gone. */
  stop(timeoutMs: number): Promise<void>;
  /** Stops watching, and leaves the server running for whoever else uses it. */
  leave(): void;
}

export function supervise(
  first: Postmaster,
  folder: string,
  again: () => Promise<Postmaster>,
  logger: Logger,
): Supervised {
  const stopping = new AbortController();
  let current = first;
  let relaunch: Promise<unknown> = Promise.resolve();

  async function watch(): Promise<void> {
    let failures = 0;
    for (;;) {
      const startedAtMs = performance.now();
      const how = await current.gone;
      if (stopping.signal.aborted) return;
      if (performance.now() - startedAtMs > HEALTHY_AFTER_MS) failures = 0;
      logger.error(
        { postgresPid: current.pid, how, log: logTail(folder) },
        "PostgreSQL ended by itself; it is started again",
      );
      while (!stopping.signal.aborted) {
        await sleep(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures++), null, {
          signal: stopping.signal,
        }).catch(
          () => {}, // woken to stop
        );
        if (stopping.signal.aborted || (await restart())) break;
      }
    }
  }

  async function restart(): Promise<boolean> {
    const attempt = again();
    relaunch = attempt.catch(() => {}); // reported below; `stop` only waits for its end
    try {
      current = await attempt;
      logger.info({ postgresPid: current.pid, port: current.port }, "PostgreSQL runs again");
      return true;
    } catch (error) {
      logger.error({ err: error }, "PostgreSQL could not be started again");
      return false;
    }
  }

  void watch();
  return {
    current: () => current,
    leave: () => stopping.abort(),
    stop: async (timeoutMs) => {
      stopping.abort();
      await relaunch;
      await shutDown(current, timeoutMs);
    },
  };
}
