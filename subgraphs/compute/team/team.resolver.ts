import { Arg, Ctx, FieldResolver, Query, Resolver, Root } from "type-graphql";
import { connectionOf, FIRST, type Page, page, pageSize } from "../../../infra/graphql/connection.ts";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { Member } from "../member/member.entity.ts";
import { Me, meOf } from "./me.ts";
import { teamsById } from "./team.commands.ts";
import { Team } from "./team.entity.ts";

const MemberConnection = connectionOf(Member, "Member");

function teamOf(context: GraphContext, id: string): Promise<Team | null> {
  return context.loader<string, Team | null>("team", (ids) => teamsById(context.db, ids)).load(id);
}

@Resolver(() => Me)
export class MeResolver {
  @Query(() => Me, { description: "Who is asking." })
  me(@Ctx() context: GraphContext): Me {
    return meOf(actorOf(context));
  }

  @FieldResolver(() => Team, { description: "The caller's team." })
  team(@Root() me: Me, @Ctx() context: GraphContext): Promise<Team | null> {
    return teamOf(context, me.tenantId);
  }
}

@Resolver(() => Team)
export class TeamResolver {
  @FieldResolver(() => MemberConnection, { description: "The people of the team, oldest first." })
  members(
    @Root() team: Team,
    @Ctx() context: GraphContext,
    @Arg("first", FIRST.type, FIRST.options) first: number | null,
    @Arg("after", () => String, { nullable: true, description: "Go on after this cursor." }) after: string | null,
  ): Promise<Page<Member>> {
    return page<Member>({
      list: "members",
      first: pageSize(first),
      after,
      keyLength: 1,
      keyOf: (m) => [m.id],
      read: (key, limit) =>
        context.db.rows(Member, "where t.team_id = $1 and t.id > $2 order by t.id limit $3", [
          team.id,
          key?.[0] ?? "",
          limit,
        ]),
    });
  }
}

/** The caller's own team; another one reads as absent. */
export async function teamReference(reference: { id: string }, context: GraphContext): Promise<Team | null> {
  return reference.id === actorOf(context).tenantId ? teamOf(context, reference.id) : null;
}
