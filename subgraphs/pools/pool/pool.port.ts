import type { PoolPort } from "../published.ts";
import { poolsById } from "./pool.commands.ts";

/** Pools for other domains. */
export const pools: PoolPort = {
  exists: async (q, tenantId, poolId) => (await poolsById(q, tenantId, [poolId]))[0] !== null,
};
