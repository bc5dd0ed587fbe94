import { LIMITS } from "../../infra/kernel/limits.ts";
import type { Table } from "../row.ts";

/** Ways to a team's databases and services. The list is not paged; a path takes an id or a name. */
export const CONNECTIONS: Table = {
  createConnection: { kind: "graph", give: (reply) => reply.connection },
  listConnections: { kind: "graph", take: () => ({ first: LIMITS.connectionsPerTeam }) },
  getConnection: { kind: "graph" },
  deleteConnection: { kind: "graph", take: ({ path }) => ({ input: path }) },
  verifyConnection: { kind: "graph", take: ({ path }) => ({ input: path }), give: (reply) => reply.connection },
};
