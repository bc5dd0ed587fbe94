import { Field, ID, ObjectType } from "type-graphql";
import { closed, enumOf } from "../../../infra/db/closed.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";

const ACTOR_ROLES = closed("ActorRole", "What a caller may do: a member's role, or `team` for a key of no member.", [
  "admin",
  "member",
  "team",
]);

/** The caller, as the credentials tell. */
@ObjectType("Me", { description: "Who is asking, as the API key tells." })
export class Me {
  @Field(() => String, { description: "The member's e-mail address; empty for a key of no member.", simple: true })
  email!: string;
  @Field(() => String, { description: "The member's name, or the key's for a key of no member.", simple: true })
  name!: string;
  @Field(() => ID, { description: "The team's id.", simple: true }) tenantId!: string;
  @Field(() => ID, { description: "The id of the key in use.", simple: true }) keyId!: string;
  @Field(() => ID, { nullable: true, description: "The member; null for a key of no member.", simple: true })
  memberId!: string | null;
  @Field(() => enumOf(ACTOR_ROLES), { description: "What the caller may do.", simple: true }) role!: Actor["role"];
  @Field(() => [String], { description: "What the key may be used for.", simple: true }) scopes!: readonly string[];
}

/** The caller as the graph shows it. */
export function meOf(actor: Actor): Me {
  const { email, name, tenantId, keyId, memberId, role, scopes } = actor;
  return Object.assign(new Me(), { email, name, tenantId, keyId, memberId, role, scopes });
}
