import type { Queryer } from "../../infra/db/database.ts";

/** What other domains may ask of compute. */
export interface WorkloadPort {
  /** True when the tenant has such a workload. */
  exists(q: Queryer, tenantId: string, workloadId: string): Promise<boolean>;
}
