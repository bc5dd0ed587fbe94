import type { Table } from "../row.ts";

/** RL evidence and recipes. */
export const RL: Table = {
  listRLRecipes: { kind: "graph" },
  listWorkloadRLEvents: { kind: "graph" },
};
