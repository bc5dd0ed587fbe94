import { LIMITS } from "../../infra/kernel/limits.ts";
import type { Table } from "../row.ts";

/** The team's own machines. */
export const POOLS: Table = {
  createPool: { kind: "graph", give: (reply) => reply.pool },
  listPools: { kind: "graph", take: () => ({ first: LIMITS.poolsPerTeam }) },
  getPool: { kind: "graph" },
};
