import type { CommandBounds, Queryer } from "../../infra/db/database.ts";
import { forJob } from "../../infra/db/job-bounds.ts";

/** `forJob` where only the workload is known. */
export async function ofWorkloadsTeam(q: Queryer, workloadId: string): Promise<CommandBounds> {
  const [row] = await q.sql<{ tenant_id: string }>("select tenant_id from compute.workload where id = $1", [
    workloadId,
  ]);
  return row ? forJob(row.tenant_id) : {};
}

/** `forJob` where only the placement is known. */
export async function ofPlacementsTeam(q: Queryer, placementId: string): Promise<CommandBounds> {
  const [row] = await q.sql<{ tenant_id: string }>("select tenant_id from compute.placement where id = $1", [
    placementId,
  ]);
  return row ? forJob(row.tenant_id) : {};
}
