import { Arg, Ctx, Directive, ID, ObjectType, Query, Resolver } from "type-graphql";
import { actorOf } from "../../infra/graphql/context.ts";
import { Node } from "../../infra/graphql/node.ts";
import { type IdNoun, isId } from "../../infra/kernel/ids.ts";
import { apiKeyReference } from "./api-key/api-key.resolver.ts";
import type { ComputeContext } from "./compute-context.ts";
import { FOREIGN_NOUNS, type ForeignNoun } from "./foreign-nouns.ts";
import { memberOf } from "./member/member.resolver.ts";
import { placementOf } from "./placement/placement.reads.ts";
import { teamReference } from "./team/team.resolver.ts";
import { workloadOf } from "./workload/workload.reads.ts";

/**
 * What other domains own is known here by its key alone; the router reads the rest where it lives. Classes of our own
 * under the owners' names: a field on an owner's class would leak into its schema.
 */
@Directive('@key(fields: "id")')
@ObjectType("Asset", { implements: Node, description: "Code or data of a team, kept for its runs." })
export class AssetStub extends Node {}
@Directive('@key(fields: "id")')
@ObjectType("Secret", {
  implements: Node,
  description: "A named value that runs may use and nobody can read back. This is what is known about it.",
})
export class SecretStub extends Node {}
@Directive('@key(fields: "id")')
@ObjectType("Connection", {
  implements: Node,
  description: "A way to a service of the team's, with one version of a secret as its credential.",
})
export class ConnectionStub extends Node {}
@Directive('@key(fields: "id")')
@ObjectType("Pool", {
  implements: Node,
  description:
    "Machines of a team's own. A new pool is measured, free of charge; forecasts and placement are switched on apart.",
})
export class PoolStub extends Node {}
@Directive('@key(fields: "id")')
@ObjectType("Workspace", {
  implements: Node,
  description: "A named folder that outlives the sandboxes which mount it, one at a time.",
})
export class WorkspaceStub extends Node {}

type Read = (context: ComputeContext, id: string) => Promise<object | null>;

const STUBS: Record<ForeignNoun, new () => Node> = {
  asset: AssetStub,
  secret: SecretStub,
  connection: ConnectionStub,
  pool: PoolStub,
  workspace: WorkspaceStub,
};

/** Ids tell what they name. */
const READS: readonly [IdNoun, Read][] = [
  ["workload", workloadOf],
  ["placement", placementOf],
  ["team", async (context, id) => teamReference({ id }, context)],
  ["member", memberOf],
  ["apiKey", (context, id) => apiKeyReference({ id }, context)],
  ...FOREIGN_NOUNS.map((noun): [IdNoun, Read] => [noun, (context, id) => stubOf(context, noun, id)]),
];

async function stubOf(context: ComputeContext, noun: ForeignNoun, id: string): Promise<Node | null> {
  const { tenantId } = actorOf(context);
  const exists = await context.compute.exists[noun](context.db, tenantId, id);
  return exists ? Object.assign(new STUBS[noun](), { id }) : null;
}

@Resolver()
export class NodeResolver {
  @Query(() => Node, {
    nullable: true,
    description: "Any object of the team by its id alone; null when there is none.",
  })
  async node(
    @Arg("id", () => ID, { description: "The object's id." }) id: string,
    @Ctx() context: ComputeContext,
  ): Promise<object | null> {
    actorOf(context);
    const read = READS.find(([noun]) => isId(noun, id))?.[1];
    return read ? read(context, id) : null;
  }
}
