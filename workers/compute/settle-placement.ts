import { DONE, implementJob } from "../../infra/queue/implement-job.ts";
import { settlePlacement } from "../../subgraphs/compute/jobs.ts";
import { settle } from "../../subgraphs/compute/lifecycle/settlement.commands.ts";
import { ofPlacementsTeam } from "./team-bounds.ts";

/** Posts a placement's charge. A second run finds it closed. */
export const settlePlacementJob = implementJob(settlePlacement, async ({ placementId }, { db, clock }) => {
  const now = clock.now();
  await db.command((tx) => settle(tx, placementId, now), await ofPlacementsTeam(db, placementId));
  return DONE;
});
