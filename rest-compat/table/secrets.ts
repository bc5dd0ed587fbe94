import { LIMITS } from "../../infra/kernel/limits.ts";
import type { Table } from "../row.ts";

/** Secrets: values go in, names come out. The list is not paged. */
export const SECRETS: Table = {
  putSecret: { kind: "graph", give: (reply) => reply.secret },
  listSecrets: { kind: "graph", take: () => ({ first: LIMITS.secretsPerTeam }) },
  deleteSecret: { kind: "graph", take: ({ path }) => ({ input: path }) },
};
