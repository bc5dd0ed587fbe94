import type { CommandBounds, Queryer } from "../../infra/db/database.ts";

/** Of a command of a job or a reconciler about one team's rows: while somebody holds one of them, it is left for later. */
export function ofTeam(teamId: string): CommandBounds {
  return { teamId, comesAgain: true };
}

/** The same where only the workload is known. */
export async function ofWorkloadsTeam(q: Queryer, workloadId: string): Promise<CommandBounds> {
  const [row] = await q.sql<{ tenant_id: string }>("select tenant_id from compute.workload where id = $1", [
    workloadId,
  ]);
  return row ? ofTeam(row.tenant_id) : {};
}

/** The same where only the placement is known. */
export async function ofPlacementsTeam(q: Queryer, placementId: string): Promise<CommandBounds> {
  const [row] = await q.sql<{ tenant_id: string }>("select tenant_id from compute.placement where id = $1", [
    placementId,
  ]);
  return row ? ofTeam(row.tenant_id) : {};
}
