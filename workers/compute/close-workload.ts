import { DONE, implementJob, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { closeWorkload } from "../../subgraphs/compute/jobs.ts";
import { NOTHING_POSTED, settleWorkload } from "../../subgraphs/compute/lifecycle/settlement.commands.ts";
import type { AssetPort, ConnectionPort, SecretPort } from "../../subgraphs/data/published.ts";
import { ofWorkloadsTeam } from "./team-bounds.ts";

/** Lets go of a finished workload's assets, connections and secrets. */
export function closeWorkloadJob(ports: {
  assets: AssetPort;
  secrets: SecretPort;
  connections: ConnectionPort;
}): JobImplementation<{ workloadId: string }> {
  return implementJob(closeWorkload, async ({ workloadId }, { db, clock }) => {
    const now = clock.now();
    await db.command(
      async (tx) => {
        await settleWorkload(tx, workloadId, NOTHING_POSTED, now);
        const [settled] = await tx.sql("select 1 from compute.workload where id = $1 and settled_at is not null", [
          workloadId,
        ]);
        if (!settled) return; // something of it is still open; its end sends again
        await ports.assets.release(tx, workloadId, now);
        await ports.connections.release(tx, workloadId, now);
        await ports.secrets.release(tx, workloadId, now);
      },
      await ofWorkloadsTeam(db, workloadId),
    );
    return DONE;
  });
}
