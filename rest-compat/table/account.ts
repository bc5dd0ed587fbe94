import type { Table } from "../row.ts";

/** Who the caller is. */
export const ACCOUNT: Table = {
  identity: { kind: "graph" },
};
