import type { Database } from "../../infra/db/database.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { Refused } from "../../infra/kernel/refusal.ts";
import type { Logger } from "../../infra/telemetry/logger.ts";
import type { AssetLimits } from "../../subgraphs/data/asset/asset-limits.ts";
import { reportExport } from "../../subgraphs/data/export/export.commands.ts";
import { type ExportClaim, StaleExport } from "../../subgraphs/data/export/export-claim.ts";
import { ExportFailure } from "../../subgraphs/data/export/export-failure.ts";
import { RecordCounter, type ResultLimits } from "../../subgraphs/data/export/record-counter.ts";

export interface WatchDeps {
  db: Database;
  clock: Clock;
  limits: AssetLimits;
  resultLimits: ResultLimits;
  logger: Logger;
}

/** How often a process that runs an export says that it is alive. */
const REPORT_EVERY_MS = 2_000;

/** Reports an export while it runs, and cuts it off when its time is over, its team's storage is full or it is stale. */
export class ExportWatch {
  readonly counter: RecordCounter;
  readonly #cut = new AbortController();
  readonly #stopped = new AbortController();
  readonly #deps: WatchDeps;
  readonly #claim: ExportClaim;

  constructor(deps: WatchDeps, claim: ExportClaim) {
    this.#deps = deps;
    this.#claim = claim;
    this.counter = new RecordCounter(deps.resultLimits, { header: claim.format === "csv" });
  }

  /** Aborts with an `ExportFailure` or a `StaleExport`. */
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
      if (leftMs <= 0) this.#cut.abort(timedOut());
      else await clock.sleep(Math.min(REPORT_EVERY_MS, leftMs), stopped);
      if (!stopped.aborted && !this.signal.aborted) await this.#report();
    }
  }

  async #report(): Promise<void> {
    const { db, limits, clock, logger } = this.#deps;
    const progress = { rows: Math.max(this.counter.rows, 0), bytes: this.counter.bytes };
    try {
      await reportExport(db, this.#claim, progress, limits, clock.now());
    } catch (error) {
      if (error instanceof StaleExport) this.#cut.abort(error);
      else if (error instanceof Refused) this.#cut.abort(quotaExceeded(error));
      // A report that did not get through is made up for by the next; without any, the lease runs out.
      else logger.warn({ err: error, exportId: this.#claim.exportId }, "an export could not be reported");
    }
  }
}

function timedOut(): ExportFailure {
  const minutes = LIMITS.exportMs / 60_000;
  return new ExportFailure("query_timeout", `The export was not done within ${minutes} minutes, waiting included.`);
}

export function quotaExceeded(refused: Refused): ExportFailure {
  return new ExportFailure("quota_exceeded", refused.message, refused);
}
