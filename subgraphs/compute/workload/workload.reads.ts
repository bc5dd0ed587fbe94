import type { EntityClass, Queryer } from "../../../infra/db/database.ts";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { Workload } from "./workload.entity.ts";

/** The workload of an id within the tenant, or null: another team's does not exist. */
export function findWorkload(q: Queryer, tenantId: string, id: string): Promise<Workload | null> {
  if (!isId("workload", id)) return Promise.resolve(null); // nor may every text be asked of the database
  return q.row(Workload, "where t.tenant_id = $1 and t.id = $2", [tenantId, id]);
}

/** As `findWorkload` for the caller, batched within a request. */
export function workloadOf(context: GraphContext, id: string): Promise<Workload | null> {
  const { tenantId } = actorOf(context, "workloads:read");
  if (!isId("workload", id)) return Promise.resolve(null);
  return context
    .loader<string, Workload | null>("workload", async (ids) => {
      const rows = await context.db.rows(Workload, "where t.tenant_id = $1 and t.id = any($2)", [tenantId, ids]);
      const found = new Map(rows.map((w) => [w.id, w]));
      return ids.map((one) => found.get(one) ?? null);
    })
    .load(id);
}

/** What hangs on a workload: its type, and how the rows of one workload are ordered. */
interface Hanging<T> {
  /** Name of the read; reads of the same name are one. */
  name: string;
  type: EntityClass<T & object>;
  /** SQL between the table and the WHERE. */
  join?: string;
  /** SQL after the tenant and the workloads; `$3` and following are `values`. */
  tail: string;
  values?: readonly unknown[];
}

/** Rows of the caller's team that hang on a workload; one statement for all workloads of a request. */
export function hangingOn<T extends { workloadId: string }>(
  context: GraphContext,
  workloadId: string,
  { name, type, join = "", tail, values = [] }: Hanging<T>,
): Promise<T[]> {
  const { tenantId } = actorOf(context, "workloads:read");
  return context
    .loader<string, T[]>(name, async (ids) => {
      const where = `where t.tenant_id = $1 and t.workload_id = any($2) ${tail}`;
      return byWorkload(ids, (await context.db.rows(type, `${join} ${where}`, [tenantId, ids, ...values])) as T[]);
    })
    .load(workloadId);
}

function byWorkload<T extends { workloadId: string }>(ids: readonly string[], rows: readonly T[]): T[][] {
  const groups = new Map<string, T[]>(ids.map((id) => [id, []]));
  for (const row of rows) groups.get(row.workloadId)?.push(row);
  return ids.map((id) => groups.get(id)!);
}
