import { Arg, Ctx, ID, Query, Resolver } from "type-graphql";
import { Node } from "../../infra/graphql/node.ts";
import { type IdNoun, isId } from "../../infra/kernel/ids.ts";
import { apiKeyReference } from "./api-key/api-key.resolver.ts";
import type { ComputeContext } from "./compute-context.ts";
import { memberOf } from "./member/member.resolver.ts";
import { placementOf } from "./placement/placement.reads.ts";
import { teamReference } from "./team/team.resolver.ts";
import { workloadOf } from "./workload/workload.reads.ts";

type Read = (context: ComputeContext, id: string) => Promise<object | null>;

/** Ids tell what they name. */
const READS: readonly [IdNoun, Read][] = [
  ["workload", workloadOf],
  ["placement", placementOf],
  ["team", async (context, id) => teamReference({ id }, context)],
  ["member", memberOf],
  ["apiKey", (context, id) => apiKeyReference({ id }, context)],
];

@Resolver()
export class NodeResolver {
  @Query(() => Node, { nullable: true, description: "A workload, placement, team, member or key by its id alone." })
  async node(
    @Arg("id", () => ID, { description: "The object's id." }) id: string,
    @Ctx() context: ComputeContext,
  ): Promise<object | null> {
    const read = READS.find(([noun]) => isId(noun, id))?.[1];
    return read ? read(context, id) : null;
  }
}
