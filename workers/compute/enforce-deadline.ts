import { DONE, implementJob } from "../../infra/queue/implement-job.ts";
import { enforceDeadline } from "../../subgraphs/compute/jobs.ts";
import { stopAtDeadline } from "../../subgraphs/compute/lifecycle/deadline.commands.ts";
import { ofWorkloadsTeam } from "./team-bounds.ts";

/** Ends a workload at its deadline. The host of a running one stops it by itself too, on its own clock. */
export const enforceDeadlineJob = implementJob(enforceDeadline, async ({ workloadId }, { db, clock }) => {
  const now = clock.now();
  const due = await db.command((tx) => stopAtDeadline(tx, workloadId, now), await ofWorkloadsTeam(db, workloadId));
  return due === null ? DONE : { outcome: "later", at: due, reason: "the deadline has not come" };
});
