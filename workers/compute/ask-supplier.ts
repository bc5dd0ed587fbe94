import type { Clock } from "../../infra/kernel/clock.ts";
import type { Logger } from "../../infra/telemetry/logger.ts";

/** What a call to a supplier may use. */
export interface Ask {
  clock: Clock;
  logger: Logger;
  /** Of the job or reconciler that asks. */
  signal: AbortSignal;
  timeoutMs: number;
}

/**
 * Calls a driver, for `timeoutMs` at most. A driver answers with values; one that throws or does not come back has an
 * unknown outcome like any other lost answer: null, with the reason in the log.
 */
export async function askSupplier<T>(
  ask: Ask,
  what: string,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const { clock, logger, timeoutMs } = ask;
  const late = new AbortController();
  const answered = new AbortController();
  const signal = AbortSignal.any([ask.signal, late.signal]);
  const timer = clock.sleep(timeoutMs, AbortSignal.any([ask.signal, answered.signal])).then(() => null);
  const answer = call(signal).catch((err) => {
    logger.warn({ err, what }, "a supplier's driver failed");
    return null;
  });
  try {
    return await Promise.race([answer, timer]);
  } finally {
    answered.abort(OVER);
    late.abort(OVER);
  }
}

/** Why what belongs to a call is ended with it. One for all calls: to make one collects the stack each time. */
const OVER = new Error("the call to the supplier is over");
