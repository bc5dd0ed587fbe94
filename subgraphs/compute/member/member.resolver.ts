import { Arg, Ctx, Field, InputType, Mutation, ObjectType, Resolver } from "type-graphql";
import { enumOf } from "../../../infra/db/closed.ts";
import { actorOf, adminOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { addMember, membersById } from "./member.commands.ts";
import { MEMBER_ROLES, Member, type MemberRole } from "./member.entity.ts";

@InputType({ description: "The person to add." })
export class AddMemberInput {
  @Field(() => String, { description: "E-mail address, unique within the team." }) email!: string;
  @Field(() => String, { description: "What people call the member." }) name!: string;
  @Field(() => enumOf(MEMBER_ROLES), { description: "What the member may do.", defaultValue: "member" })
  role!: MemberRole;
}

@ObjectType({ description: "The member that was added." })
export class AddMemberPayload {
  @Field(() => Member, { description: "The new member.", simple: true }) member!: Member;
}

@Resolver(() => Member)
export class MemberResolver {
  @Mutation(() => AddMemberPayload, { description: "Adds a person to the team. Administrators only." })
  async addMember(
    @Arg("input", () => AddMemberInput, { description: "The person to add." }) input: AddMemberInput,
    @Ctx() context: GraphContext,
  ): Promise<AddMemberPayload> {
    return { member: await addMember(context.db, adminOf(context), input, context.clock.now()) };
  }
}

/** A member of the caller's team, read in batches; null for anybody else. */
export async function memberOf(context: GraphContext, id: string): Promise<Member | null> {
  const { tenantId } = actorOf(context);
  if (!isId("member", id)) return null;
  return context.loader<string, Member | null>("member", (ids) => membersById(context.db, tenantId, ids)).load(id);
}

export function memberReference(reference: { id: string }, context: GraphContext): Promise<Member | null> {
  return memberOf(context, reference.id);
}
