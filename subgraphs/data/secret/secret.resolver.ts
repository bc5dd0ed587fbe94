import { Arg, Ctx, Field, InputType, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import { connectionOf, FIRST, type Page, page, pageSize } from "../../../infra/graphql/connection.ts";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { DataContext } from "../data-context.ts";
import { listSecrets, putSecret, retireSecret } from "./secret.commands.ts";
import { Secret } from "./secret.entity.ts";

const SecretConnection = connectionOf(Secret, "Secret");

@InputType({ description: "The secret to write." })
export class PutSecretInput {
  @Field(() => String, {
    description: "A letter or _ followed by letters, digits or _; not one that the platform sets itself.",
  })
  name!: string;
  @Field(() => String, { description: "1 to 4096 bytes of UTF-8 without NUL. It cannot be read back." }) value!: string;
}

@ObjectType({ description: "A secret that got a new version." })
export class PutSecretPayload {
  @Field(() => Secret, { description: "What is known of the secret.", simple: true }) secret!: Secret;
}

@InputType({ description: "The secret to retire." })
export class RetireSecretInput {
  @Field(() => String, { description: "The name." }) name!: string;
}

@ObjectType({ description: "A secret that is no longer in use." })
export class RetireSecretPayload {
  @Field(() => Secret, { description: "What is known of the secret.", simple: true }) secret!: Secret;
}

@Resolver(() => Secret)
export class SecretResolver {
  @Query(() => SecretConnection, {
    description: "The names in use, in order, each with its newest version. Never values.",
  })
  secrets(
    @Ctx() context: GraphContext,
    @Arg("first", FIRST.type, FIRST.options) first: number | null,
    @Arg("after", () => String, { nullable: true, description: "Go on after this cursor." }) after: string | null,
  ): Promise<Page<Secret>> {
    const { tenantId } = actorOf(context, "data:read");
    return page<Secret>({
      list: "secrets",
      first: pageSize(first, LIMITS.secretsPerTeam),
      after,
      keyLength: 1,
      keyOf: (s) => [s.name],
      read: (key, limit) => listSecrets(context.db, tenantId, key ? String(key[0]) : null, limit),
    });
  }

  @Mutation(() => PutSecretPayload, {
    description: "Writes a new version of a secret. Sent twice it writes two versions.",
  })
  async putSecret(
    @Arg("input", () => PutSecretInput, { description: "The secret to write." }) input: PutSecretInput,
    @Ctx() context: DataContext,
  ): Promise<PutSecretPayload> {
    const deps = { db: context.db, box: context.data.secretBox };
    return { secret: await putSecret(deps, actorOf(context, "data:write"), input, context.clock.now()) };
  }

  @Mutation(() => RetireSecretPayload, {
    description: "Takes a name out of use. Runs that hold a version keep it to their end.",
  })
  async retireSecret(
    @Arg("input", () => RetireSecretInput, { description: "The secret to retire." }) input: RetireSecretInput,
    @Ctx() context: GraphContext,
  ): Promise<RetireSecretPayload> {
    return { secret: await retireSecret(context.db, actorOf(context, "data:write"), input.name, context.clock.now()) };
  }
}

/** A secret of the caller's team; null for anything else. */
export async function secretReference(reference: { id: string }, context: GraphContext): Promise<Secret | null> {
  const { tenantId } = actorOf(context, "data:read");
  if (!isId("secret", reference.id)) return null;
  return context.db.row(Secret, "where t.tenant_id = $1 and t.id = $2", [tenantId, reference.id]);
}
