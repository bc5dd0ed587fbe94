import { Arg, Ctx, Field, Float, InputType, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import { connectionOf, FIRST, type Page, page, pageSize } from "../../../infra/graphql/connection.ts";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { createWorkspace, listWorkspaces } from "./workspace.commands.ts";
import { Workspace } from "./workspace.entity.ts";

const WorkspaceConnection = connectionOf(Workspace, "Workspace");

@InputType({ description: "The workspace to make." })
export class CreateWorkspaceInput {
  @Field(() => String, { description: "1 to 128 letters, digits, dots, dashes or underscores." }) name!: string;
  @Field(() => Float, { description: "How much it can hold, in GiB; parts of one are allowed." }) sizeGb!: number;
}

@ObjectType({ description: "A workspace that is there now." })
export class CreateWorkspacePayload {
  @Field(() => Workspace, { description: "The workspace.", simple: true }) workspace!: Workspace;
  @Field(() => Boolean, { description: "It was there already, with this name and size.", simple: true })
  replayed!: boolean;
}

@Resolver(() => Workspace)
export class WorkspaceResolver {
  @Query(() => WorkspaceConnection, { description: "The team's workspaces, newest first." })
  workspaces(
    @Ctx() context: GraphContext,
    @Arg("first", FIRST.type, FIRST.options) first: number | null,
    @Arg("after", () => String, { nullable: true, description: "Go on after this cursor." }) after: string | null,
  ): Promise<Page<Workspace>> {
    const { tenantId } = actorOf(context, "sandboxes:read");
    return page<Workspace>({
      list: "workspaces",
      first: pageSize(first, LIMITS.workspacesPerTeam),
      after,
      keyLength: 1,
      keyOf: (w) => [w.id],
      read: (key, limit) => listWorkspaces(context.db, tenantId, key ? String(key[0]) : null, limit),
    });
  }

  @Mutation(() => CreateWorkspacePayload, {
    description: "Makes an empty workspace, or answers the one of this name and size.",
  })
  createWorkspace(
    @Arg("input", () => CreateWorkspaceInput, { description: "The workspace to make." }) input: CreateWorkspaceInput,
    @Ctx() context: GraphContext,
  ): Promise<CreateWorkspacePayload> {
    return createWorkspace(context.db, actorOf(context, "sandboxes:write"), input, context.clock.now());
  }
}

/** A workspace of the caller's team; null for anything else. */
export async function workspaceReference(reference: { id: string }, context: GraphContext): Promise<Workspace | null> {
  const { tenantId } = actorOf(context, "sandboxes:read");
  if (!isId("workspace", reference.id)) return null;
  return context.db.row(Workspace, "where t.tenant_id = $1 and t.id = $2", [tenantId, reference.id]);
}
