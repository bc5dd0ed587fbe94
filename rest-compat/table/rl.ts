import { LIMITS } from "../../infra/kernel/limits.ts";
import type { Table } from "../row.ts";

/** RL evidence and recipes. */
export const RL: Table = {
  listRLRecipes: { kind: "graph", take: () => ({ first: LIMITS.listPageMax }) },
  listWorkloadRLEvents: { kind: "graph", give: (reply) => reply.rlEvents },
};
