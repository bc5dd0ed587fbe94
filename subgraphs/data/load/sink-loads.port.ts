import type { LoadPort, OutputLoad } from "../published.ts";

/** Loads for those who show outputs. */
export const sinkLoads: LoadPort = {
  ofWorkloads: (q, { tenantId, workloadIds }) =>
    q.sql<OutputLoad>(
      `select workload_id as "workloadId", stage_id as "stageId", generation, name, state, row_count::float8 as "rowCount", error
         from data.sink_load where tenant_id = $1 and workload_id = any($2) order by stage_id, generation, name`,
      [tenantId, workloadIds],
    ),
};
