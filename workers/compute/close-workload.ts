import { DONE, implementJob, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { closeWorkload } from "../../subgraphs/compute/jobs.ts";
import type { AssetPort, SecretPort } from "../../subgraphs/data/published.ts";

/** Lets go of a finished workload's assets and secrets. */
export function closeWorkloadJob(ports: {
  assets: AssetPort;
  secrets: SecretPort;
}): JobImplementation<{ workloadId: string }> {
  return implementJob(closeWorkload, async ({ workloadId }, { db, clock }) => {
    const now = clock.now();
    await db.command(async (tx) => {
      const [over] = await tx.sql<{ placed: boolean }>(
        `select exists (select 1 from compute.placement p where p.workload_id = w.id) as placed
         from compute.workload w where w.id = $1 and w.terminal_at is not null
           and not exists (select 1 from compute.placement p where p.workload_id = w.id and p.state <> 'closed')`,
        [workloadId],
      );
      if (!over) return;
      // A workload that was never placed owes nothing and holds nothing: that settles it.
      if (!over.placed)
        await tx.sql(
          "update compute.workload set settled_at = coalesce(settled_at, $2), resources_released_at = coalesce(resources_released_at, $2) where id = $1",
          [workloadId, now],
        );
      await ports.assets.release(tx, workloadId, now);
      await ports.secrets.release(tx, workloadId, now);
    });
    return DONE;
  });
}
