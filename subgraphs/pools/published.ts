import type { Queryer } from "../../infra/db/database.ts";

/** What other domains may ask of pools. */
export interface PoolPort {
  /** True when the tenant has such a pool. */
  exists(q: Queryer, tenantId: string, poolId: string): Promise<boolean>;
}
