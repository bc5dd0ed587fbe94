import type { Database } from "../../infra/db/database.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { sweepDeliveries } from "../../subgraphs/data/delivery/sweep-deliveries.ts";
import type { Reconciler } from "../reconcile/schedule.ts";

/** Forgets deliveries that nobody will look at any more, a bounded number in each round. */
export function pastDeliveries({ db, clock }: { db: Database; clock: Clock }): Reconciler {
  return {
    name: "past webhook deliveries",
    everyMs: 60_000,
    run: async () => {
      await sweepDeliveries(db, clock.now());
    },
  };
}
