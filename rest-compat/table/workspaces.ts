import { LIMITS } from "../../infra/kernel/limits.ts";
import type { Table } from "../row.ts";

/** Workspaces. Creating one again under its name and size answers the one that exists, as a first creation would. */
export const WORKSPACES: Table = {
  createWorkspace: { kind: "graph", give: (reply) => reply.workspace },
  listWorkspaces: { kind: "graph", take: () => ({ first: LIMITS.workspacesPerTeam }) },
};
