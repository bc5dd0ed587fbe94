import type { Database } from "../../infra/db/database.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import type { Logger } from "../../infra/telemetry/logger.ts";
import { type LoadClaim, reportLoad, StaleLoad } from "../../subgraphs/data/load/load-claim.ts";
import { LoadFailure } from "../../subgraphs/data/load/load-failure.ts";

/** How often a process that does a load says that it is alive. */
const REPORT_EVERY_MS = 5_000;

/** Reports a load while it is under way, and cuts it off when its time is over or another process has it. */
export class LoadWatch {
  readonly #cut = new AbortController();
  readonly #stopped = new AbortController();
  readonly #deps: { db: Database; clock: Clock; logger: Logger };
  readonly #claim: LoadClaim;

  constructor(deps: { db: Database; clock: Clock; logger: Logger }, claim: LoadClaim) {
    this.#deps = deps;
    this.#claim = claim;
  }

  /** Aborts with a `LoadFailure` or a `StaleLoad`. */
  get signal(): AbortSignal {
    return this.#cut.signal;
  }

  stop(): void {
    this.#stopped.abort();
  }

  async run(): Promise<void> {
    const { clock } = this.#deps;
    const stopped = this.#stopped.signal;
    while (!stopped.aborted && !this.signal.aborted) {
      const leftMs = this.#claim.deadlineAt.getTime() - clock.now().getTime();
      if (leftMs <= 0) this.#cut.abort(new LoadFailure("size_limit", "The load was not done in time."));
      else await clock.sleep(Math.min(REPORT_EVERY_MS, leftMs), stopped);
      if (!stopped.aborted && !this.signal.aborted) await this.#report();
    }
  }

  async #report(): Promise<void> {
    const { db, clock, logger } = this.#deps;
    try {
      await reportLoad(db, this.#claim, clock.now());
    } catch (error) {
      if (error instanceof StaleLoad) this.#cut.abort(error);
      // A report that did not get through is made up for by the next; without any, the lease runs out.
      else logger.warn({ err: error, loadId: this.#claim.loadId }, "a load could not be reported");
    }
  }
}
