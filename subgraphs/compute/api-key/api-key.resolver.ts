import {
  Arg,
  Ctx,
  Field,
  FieldResolver,
  GraphQLISODateTime,
  ID,
  InputType,
  Mutation,
  ObjectType,
  Query,
  Resolver,
  Root,
} from "type-graphql";
import { connectionOf, FIRST, type Page, page, pageSize } from "../../../infra/graphql/connection.ts";
import { adminOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Member } from "../member/member.entity.ts";
import { memberOf } from "../member/member.resolver.ts";
import { mintApiKey, revokeApiKey } from "./api-key.commands.ts";
import { ApiKey, ApiKeyAudit } from "./api-key.entity.ts";

const ApiKeyConnection = connectionOf(ApiKey, "ApiKey");

@InputType({ description: "The key to make." })
export class CreateApiKeyInput {
  @Field(() => String, { description: "What people call the key." }) name!: string;
  @Field(() => ID, {
    nullable: true,
    description: "The member that the key acts for; none for a key of the team itself.",
  })
  memberId?: string | null;
  @Field(() => [String], { description: "What the key may be used for; no more than the key in use has." })
  scopes!: string[];
  @Field(() => GraphQLISODateTime, { nullable: true, description: "From when the key is refused; never unless said." })
  expiresAt?: Date | null;
}

@ObjectType({ description: "A new key." })
export class CreateApiKeyPayload {
  @Field(() => ApiKey, { description: "The key's record.", simple: true }) apiKey!: ApiKey;
  @Field(() => String, { description: "The key itself. It cannot be read again: keep it now.", simple: true })
  key!: string;
}

@InputType({ description: "The key to end." })
export class RevokeApiKeyInput {
  @Field(() => ID, { description: "The key's id." }) id!: string;
}

@ObjectType({ description: "A key that is no longer good for anything." })
export class RevokeApiKeyPayload {
  @Field(() => ApiKey, { description: "The key's record.", simple: true }) apiKey!: ApiKey;
}

@Resolver(() => ApiKey)
export class ApiKeyResolver {
  @Query(() => ApiKeyConnection, {
    description: "The team's keys, newest first, revoked ones included. Administrators only.",
  })
  apiKeys(
    @Ctx() context: GraphContext,
    @Arg("first", FIRST.type, FIRST.options) first: number | null,
    @Arg("after", () => String, { nullable: true, description: "Go on after this cursor." }) after: string | null,
  ): Promise<Page<ApiKey>> {
    const { tenantId } = adminOf(context);
    return page<ApiKey>({
      list: "apiKeys",
      first: pageSize(first),
      after,
      keyLength: 1,
      keyOf: (k) => [k.id],
      read: (key, limit) =>
        context.db.rows(
          ApiKey,
          "where t.team_id = $1 and ($2::text is null or t.id < $2) order by t.id desc limit $3",
          [tenantId, key?.[0] ?? null, limit],
        ),
    });
  }

  @Mutation(() => CreateApiKeyPayload, { description: "Makes a key and shows it once. Administrators only." })
  createApiKey(
    @Arg("input", () => CreateApiKeyInput, { description: "The key to make." }) input: CreateApiKeyInput,
    @Ctx() context: GraphContext,
  ): Promise<CreateApiKeyPayload> {
    const { name, scopes, memberId = null, expiresAt = null } = input;
    return mintApiKey(context.db, adminOf(context), { name, scopes, memberId, expiresAt }, context.clock.now());
  }

  @Mutation(() => RevokeApiKeyPayload, {
    description: "Ends a key at once, and every stream that it holds. Administrators only.",
  })
  async revokeApiKey(
    @Arg("input", () => RevokeApiKeyInput, { description: "The key to end." }) input: RevokeApiKeyInput,
    @Ctx() context: GraphContext,
  ): Promise<RevokeApiKeyPayload> {
    return { apiKey: await revokeApiKey(context.db, adminOf(context), input.id, context.clock.now()) };
  }

  @FieldResolver(() => Member, { nullable: true, description: "The member that the key acts for." })
  async member(@Root() key: ApiKey, @Ctx() context: GraphContext): Promise<Member | null> {
    return key.memberId === null ? null : memberOf(context, key.memberId);
  }

  @FieldResolver(() => [ApiKeyAudit], {
    description: "The key's history, newest first: its latest lines. Administrators only.",
  })
  history(@Root() key: ApiKey, @Ctx() context: GraphContext): Promise<ApiKeyAudit[]> {
    const { tenantId } = adminOf(context);
    return context.db.rows(ApiKeyAudit, "where t.team_id = $1 and t.key_id = $2 order by t.id desc limit $3", [
      tenantId,
      key.id,
      LIMITS.listPageDefault,
    ]);
  }
}

/** A key of the caller's team, for administrators; null for anything else. */
export async function apiKeyReference(reference: { id: string }, context: GraphContext): Promise<ApiKey | null> {
  const { tenantId } = adminOf(context);
  if (!isId("apiKey", reference.id)) return null;
  return context.db.row(ApiKey, "where t.team_id = $1 and t.id = $2", [tenantId, reference.id]);
}
