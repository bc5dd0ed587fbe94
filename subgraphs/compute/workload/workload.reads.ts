import type { Queryer } from "../../../infra/db/database.ts";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { Workload } from "./workload.entity.ts";

/** The workload of an id within the tenant, or null: another team's does not exist. */
export function findWorkload(q: Queryer, tenantId: string, id: string): Promise<Workload | null> {
  return q.row(Workload, "where t.tenant_id = $1 and t.id = $2", [tenantId, id]);
}

/** As `findWorkload` for the caller, batched within a request. */
export function workloadOf(context: GraphContext, id: string): Promise<Workload | null> {
  const { tenantId } = actorOf(context, "workloads:read");
  return context
    .loader<string, Workload | null>("workload", async (ids) => {
      const rows = await context.db.rows(Workload, "where t.tenant_id = $1 and t.id = any($2)", [tenantId, ids]);
      const found = new Map(rows.map((w) => [w.id, w]));
      return ids.map((one) => found.get(one) ?? null);
    })
    .load(id);
}

/** Rows by the workload that they hang on, in the order in which they were read. */
export function byWorkload<T extends { workloadId: string }>(ids: readonly string[], rows: readonly T[]): T[][] {
  const groups = new Map<string, T[]>(ids.map((id) => [id, []]));
  for (const row of rows) groups.get(row.workloadId)?.push(row);
  return ids.map((id) => groups.get(id)!);
}
