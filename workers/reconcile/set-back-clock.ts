import type { Database } from "../../infra/db/database.ts";
import { type AwaitedTime, drawIn } from "../../infra/db/draw-in.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import type { Logger } from "../../infra/telemetry/logger.ts";
import { recallQuarantines } from "../../subgraphs/compute/offer/recall-quarantines.ts";
import type { Reconciler } from "./schedule.ts";

export interface SetBackClockDeps {
  db: Database;
  clock: Clock;
  logger: Pick<Logger, "warn">;
  /** The shortest quarantine of an offer. */
  settings: { offerQuarantineMs: number };
  times: readonly AwaitedTime[];
}

/**
 * Makes due what waits for a time from before the wall clock was set back. From the rows alone, for a process that has
 * just started cannot know that it was. Leases of hosts are no part of it: `expired-leases.ts` judges those.
 */
export function setBackClock({ db, clock, logger, settings, times }: SetBackClockDeps): Reconciler {
  return {
    name: "times from before the clock was set back",
    everyMs: 5_000,
    run: async () => {
      const now = clock.now();
      const drawn = await drawIn(db, times, now);
      const offers = await recallQuarantines(db, settings, now);
      if (Object.keys(drawn).length > 0 || offers > 0)
        logger.warn(
          { drawn, offers },
          "the wall clock was set back, or another machine's is ahead: what waited for times beyond is due",
        );
    },
  };
}
