import { forJob } from "../../infra/db/job-bounds.ts";
import { DONE, implementJob, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { superviseBoot } from "../../subgraphs/compute/jobs.ts";
import { failBoot } from "../../subgraphs/compute/placement/boot.commands.ts";
import { Attempt } from "../../subgraphs/compute/placement/placement.entity.ts";
import type { ComputeWorkerDeps } from "./compute-workers.ts";

/**
 * Bounds a boot, whatever the supplier says of it: an order whose runner has not connected by its deadline is given up
 * and the next offer is tried.
 */
export function superviseBootJob(deps: ComputeWorkerDeps): JobImplementation<{ orderId: string }> {
  return implementJob(superviseBoot, async ({ orderId }) => {
    const { db, clock, settings } = deps;
    const now = clock.now();
    const attempt = await db.row(Attempt, "where t.id = $1", [orderId]);
    if (!attempt || attempt.sessionHash) return DONE;
    if (attempt.state !== "launching" && attempt.state !== "booting") return DONE;
    if (attempt.bootDeadlineAt > now)
      return { outcome: "later", at: attempt.bootDeadlineAt, reason: "the boot deadline has not come" };
    const message = "no runner connected before the boot deadline";
    const failure = { orderId, code: "boot_timeout", message, gone: false } as const;
    await db.command((tx) => failBoot(tx, failure, settings, now), forJob(attempt.tenantId));
    return DONE;
  });
}
