import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { hangingOn } from "../workload/workload.reads.ts";
import { Placement } from "./placement.entity.ts";

/** A placement of the caller's team, batched; null for anything else. */
export function placementOf(context: GraphContext, id: string): Promise<Placement | null> {
  const { tenantId } = actorOf(context, "workloads:read");
  if (!isId("placement", id)) return Promise.resolve(null);
  return context
    .loader<string, Placement | null>("placement", async (ids) => {
      const rows = await context.db.rows(Placement, "where t.tenant_id = $1 and t.id = any($2)", [tenantId, ids]);
      const found = new Map(rows.map((p) => [p.id, p]));
      return ids.map((one) => found.get(one) ?? null);
    })
    .load(id);
}

/** All generations of a workload, by stage id and then generation. */
export function placementsOf(context: GraphContext, workloadId: string): Promise<Placement[]> {
  return hangingOn(context, workloadId, {
    name: "workloadPlacements",
    type: Placement,
    tail: 'order by t.stage_id collate "C", t.generation',
  });
}
