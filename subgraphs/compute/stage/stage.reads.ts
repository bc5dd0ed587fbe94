import type { GraphContext } from "../../../infra/graphql/context.ts";
import { byWorkload } from "../workload/workload.reads.ts";
import { Stage } from "./stage.entity.ts";

/** The stages of a workload in their order; one read for all workloads of a request. */
export function stagesOf(context: GraphContext, workloadId: string): Promise<Stage[]> {
  return context
    .loader<string, Stage[]>("stages", async (ids) => {
      const rows = await context.db.rows(Stage, "where t.workload_id = any($1) order by t.workload_id, t.position", [
        ids,
      ]);
      return byWorkload(ids, rows);
    })
    .load(workloadId);
}
