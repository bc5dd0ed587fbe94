import { type Reference, type Subgraph, subgraph } from "../../infra/graphql/subgraph.ts";
import { Workspace } from "./workspace/workspace.entity.ts";
import { WorkspaceResolver, workspaceReference } from "./workspace/workspace.resolver.ts";

const resolvers = [WorkspaceResolver];

const references: [typeof Workspace, Reference][] = [[Workspace, workspaceReference]];

/** The part of the graph about sandboxes and what they mount. */
export function buildSandboxesSubgraph(): Subgraph {
  return subgraph("sandboxes", resolvers, references);
}
