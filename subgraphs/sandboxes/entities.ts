import { Workspace } from "./workspace/workspace.entity.ts";

/** Every table of the domain. */
export const sandboxesEntities = [Workspace];
