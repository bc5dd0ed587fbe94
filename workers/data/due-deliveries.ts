import type { Database } from "../../infra/db/database.ts";
import { eachStep } from "../../infra/db/each-step.ts";
import { forJob } from "../../infra/db/job-bounds.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { giveUpDeliveries } from "../../subgraphs/data/delivery/give-up-deliveries.ts";
import { type PendingTeam, pendingTeams, queueDeliveries } from "../../subgraphs/data/delivery/queue-deliveries.ts";
import { dataTopics } from "../../subgraphs/data/topics.ts";
import type { Reconciler } from "../reconcile/schedule.ts";

/** Teams that one round looks at. */
const TEAMS_A_ROUND = 1_000;

/**
 * Queues deliveries whose time has come, new ones and later tries alike, from the rows alone: it is woken for new ones,
 * and what a lost queue or a dead sender left undone is found when its claim lapses. Rounds go on where the last ended.
 */
export function dueDeliveries({ db, clock }: { db: Database; clock: Clock }): Reconciler {
  let after = "";
  return {
    name: "webhook deliveries",
    everyMs: 1_000,
    topic: dataTopics.deliveries,
    run: async (signal) => {
      const now = clock.now();
      const teams = await pendingTeams(db, now, after, TEAMS_A_ROUND);
      after = teams.length === TEAMS_A_ROUND ? teams.at(-1)!.tenantId : "";
      const see = async ({ tenantId, on, due }: PendingTeam) => {
        if (signal.aborted) return;
        if (!on) await db.command((tx) => giveUpDeliveries(tx, tenantId, now), forJob(tenantId));
        else if (due) await queueDeliveries(db, tenantId, now);
      };
      await eachStep(teams.map((team) => () => see(team)));
    },
  };
}
