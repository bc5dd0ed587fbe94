import type { Database } from "../../infra/db/database.ts";
import { eachStep } from "../../infra/db/each-step.ts";
import type { Logger } from "../../infra/telemetry/logger.ts";
import { auditBooks } from "../../subgraphs/compute/account/account.commands.ts";
import type { Reconciler } from "./schedule.ts";

/** An audit adds up a team's whole ledger, so it is done now and then. */
const EVERY_MS = 600_000;

/** Adds up every team's books. A team whose books differ from its account is admitted nothing more until somebody looked. */
export function booksReconciler({ db, logger }: { db: Database; logger: Logger }): Reconciler {
  return {
    name: "books",
    everyMs: EVERY_MS,
    run: async (signal) => {
      const accounts = await db.sql<{ id: string }>("select id from compute.account order by id");
      const auditOf = (teamId: string) => async () => {
        if (signal.aborted) return;
        if (!(await auditBooks(db, teamId))) logger.error({ teamId }, "the books of a team do not balance");
      };
      await eachStep(accounts.map(({ id }) => auditOf(id)));
    },
  };
}
