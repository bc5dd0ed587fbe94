import type { Clock } from "../../infra/kernel/clock.ts";
import { Refused } from "../../infra/kernel/refusal.ts";
import type { Logger } from "../../infra/telemetry/logger.ts";
import { StaleClaim } from "../../subgraphs/data/stale-claim.ts";

/** Work that a process has for as long as it reports. */
export interface LeasedWork {
  /** What the log says it is, such as `{ exportId }`. */
  ids: Readonly<Record<string, string>>;
  /** When it ends whatever it is at. */
  deadlineAt: Date;
  /** Why it ends then. */
  timedOut(): Error;
  /**
   * Renews the lease and tells the progress. Throws `StaleClaim` when another process has the work, `Refused` when it may
   * not go on; whatever else it throws is made up for by the next report.
   */
  report(now: Date): Promise<void>;
}

export interface LeaseWatchDeps {
  clock: Clock;
  logger: Pick<Logger, "warn">;
}

/** Many reports in a lease: it outlives a database that is gone for a while, or a process that is held up. */
export const REPORT_EVERY_MS = 2_000;

/** Reports work while it is under way, and cuts it off when its time is over, when it is stale or may not go on. */
export class LeaseWatch {
  readonly #cut = new AbortController();
  readonly #stopped = new AbortController();
  readonly #deps: LeaseWatchDeps;
  readonly #work: LeasedWork;
  /** The deadline on the clock that nobody sets. */
  readonly #untilMs: number;
  readonly #done: Promise<void>;

  /** Begins at once; whoever began it stops it. */
  constructor(deps: LeaseWatchDeps, work: LeasedWork) {
    this.#deps = deps;
    this.#work = work;
    this.#untilMs = deps.clock.monotonicMs() + work.deadlineAt.getTime() - deps.clock.now().getTime();
    this.#done = this.#run();
  }

  /** Aborts with what `timedOut` gives, or with the `StaleClaim` or `Refused` of a report. */
  get signal(): AbortSignal {
    return this.#cut.signal;
  }

  /** Resolves when no report is under way any more. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { clock } = this.#deps;
    const over = AbortSignal.any([this.#stopped.signal, this.signal]);
    while (!over.aborted) {
      const leftMs = this.#untilMs - clock.monotonicMs();
      if (leftMs <= 0) this.#cut.abort(this.#work.timedOut());
      else await clock.sleep(Math.min(REPORT_EVERY_MS, leftMs), this.#stopped.signal);
      if (!over.aborted) await this.#report();
    }
  }

  async #report(): Promise<void> {
    const { clock, logger } = this.#deps;
    try {
      await this.#work.report(clock.now());
    } catch (error) {
      if (error instanceof StaleClaim || error instanceof Refused) this.#cut.abort(error);
      // Without any report the lease runs out.
      else logger.warn({ err: error, ...this.#work.ids }, "work under way could not be reported");
    }
  }
}
