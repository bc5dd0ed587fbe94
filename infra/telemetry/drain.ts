import type { Logger } from "./logger.ts";

/** One thing to close on the way down. */
export interface Closer {
  readonly name: string;
  /** What it may take; afterwards the next one is closed all the same. */
  readonly timeoutMs: number;
  close(): Promise<void>;
}

/** Closes a process's parts in the reverse order of their opening, once. */
export class Drain {
  readonly #closers: Closer[] = [];
  readonly #logger: Logger;
  readonly #began = new AbortController();
  #closing: Promise<boolean> | null = null;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Registers what was just opened. */
  onClose(name: string, close: () => Promise<void> | void, timeoutMs = 10_000): void {
    this.#closers.push({ name, timeoutMs, close: async () => close() });
  }

  /** True from the moment that closing begins. */
  get closing(): boolean {
    return this.#closing !== null;
  }

  /** Aborts when closing begins: for what waits on behalf of a caller, and would be waited for. */
  get began(): AbortSignal {
    return this.#began.signal;
  }

  /** Closes everything; false when a part failed or took too long. Further calls wait for the first. */
  close(): Promise<boolean> {
    this.#began.abort(new Error("the process is going down"));
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<boolean> {
    let clean = true;
    for (let closer = this.#closers.pop(); closer; closer = this.#closers.pop()) {
      const fault = await closeInTime(closer);
      if (fault === null) continue;
      clean = false;
      this.#logger.error({ part: closer.name, err: fault }, "a part did not close");
    }
    return clean;
  }
}

async function closeInTime(closer: Closer): Promise<Error | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Error>((resolve) => {
    timer = setTimeout(() => resolve(new Error(`not closed within ${closer.timeoutMs} ms`)), closer.timeoutMs);
  });
  const closed = closer.close().then(
    () => null,
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  );
  const outcome = await Promise.race([closed, late]);
  clearTimeout(timer);
  return outcome;
}

/** What signals need of the process; tests give another. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): void;
  exit(code: number): void;
  /** Milliseconds that never go back. */
  nowMs(): number;
}

const thisProcess: SignalSource = {
  on: (signal, listener) => void process.on(signal, listener),
  exit: (code) => process.exit(code),
  nowMs: () => performance.now(),
};

/**
 * A terminal sends Ctrl-C to the launcher and to the platform, and the launcher passes it on: signals this close to the
 * first are the same keystroke.
 */
const SAME_SIGNAL_MS = 500;

const EXIT_CODE = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * The first SIGTERM or SIGINT closes everything and exits 0 (1 when a part did not close, or when it all takes longer
 * than `limitMs`); a second one exits at once.
 */
export function drainOnSignals(
  drain: Drain,
  logger: Logger,
  limitMs: number,
  source: SignalSource = thisProcess,
): void {
  let firstAtMs: number | null = null;
  const onSignal = (signal: NodeJS.Signals) => {
    const nowMs = source.nowMs();
    if (firstAtMs !== null) {
      if (nowMs - firstAtMs > SAME_SIGNAL_MS) source.exit(EXIT_CODE[signal as keyof typeof EXIT_CODE] ?? 1);
      return;
    }
    firstAtMs = nowMs;
    logger.info({ signal }, "stopping; a second signal exits at once");
    setTimeout(() => {
      logger.error({ limitMs }, "stopping took too long");
      source.exit(1);
    }, limitMs).unref();
    void drain.close().then((clean) => source.exit(clean ? 0 : 1));
  };
  source.on("SIGTERM", onSignal);
  source.on("SIGINT", onSignal);
}
