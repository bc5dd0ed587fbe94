import { Arg, Ctx, Field, ID, InputType, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import { connectionOf, FIRST, type Page, page, pageSize } from "../../../infra/graphql/connection.ts";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { createPool, listPools, poolsById, renamePool } from "./pool.commands.ts";
import { Pool } from "./pool.entity.ts";

const PoolConnection = connectionOf(Pool, "Pool");

@InputType({ description: "The pool to make." })
export class CreatePoolInput {
  @Field(() => String, { description: "One line of 1 to 200 bytes; blanks around it are dropped." }) name!: string;
}

@ObjectType({ description: "A new pool." })
export class CreatePoolPayload {
  @Field(() => Pool, { description: "The pool.", simple: true }) pool!: Pool;
}

@InputType({ description: "The pool and its new name." })
export class RenamePoolInput {
  @Field(() => ID, { description: "The pool's id." }) id!: string;
  @Field(() => String, { description: "One line of 1 to 200 bytes; blanks around it are dropped." }) name!: string;
}

@ObjectType({ description: "A pool with its new name." })
export class RenamePoolPayload {
  @Field(() => Pool, { description: "The pool.", simple: true }) pool!: Pool;
}

@Resolver(() => Pool)
export class PoolResolver {
  @Query(() => PoolConnection, { description: "The team's pools, newest first." })
  pools(
    @Ctx() context: GraphContext,
    @Arg("first", FIRST.type, FIRST.options) first: number | null,
    @Arg("after", () => String, { nullable: true, description: "Go on after this cursor." }) after: string | null,
  ): Promise<Page<Pool>> {
    const { tenantId } = actorOf(context, "pools:read");
    return page<Pool>({
      list: "pools",
      first: pageSize(first, LIMITS.poolsPerTeam),
      after,
      keyLength: 1,
      keyOf: (p) => [p.id],
      read: (key, limit) => listPools(context.db, tenantId, key ? String(key[0]) : null, limit),
    });
  }

  @Query(() => Pool, { nullable: true, description: "A pool of the team. Refused as `not_found`." })
  async pool(
    @Arg("id", () => ID, { description: "The pool's id." }) id: string,
    @Ctx() context: GraphContext,
  ): Promise<Pool> {
    const pool = await poolOf(context, id);
    if (!pool) throw new Refused(COMMON.not_found);
    return pool;
  }

  @Mutation(() => CreatePoolPayload, { description: "Makes a pool for measurement. Sent twice it makes two." })
  async createPool(
    @Arg("input", () => CreatePoolInput, { description: "The pool to make." }) input: CreatePoolInput,
    @Ctx() context: GraphContext,
  ): Promise<CreatePoolPayload> {
    return { pool: await createPool(context.db, actorOf(context, "pools:write"), input, context.clock.now()) };
  }

  @Mutation(() => RenamePoolPayload, { description: "Gives a pool another name." })
  async renamePool(
    @Arg("input", () => RenamePoolInput, { description: "The pool and its new name." }) input: RenamePoolInput,
    @Ctx() context: GraphContext,
  ): Promise<RenamePoolPayload> {
    return { pool: await renamePool(context.db, actorOf(context, "pools:write"), input, context.clock.now()) };
  }
}

/** A pool of the caller's team, read in batches; null for anything else. */
function poolOf(context: GraphContext, id: string): Promise<Pool | null> {
  const { tenantId } = actorOf(context, "pools:read");
  return context.loader<string, Pool | null>("pool", (ids) => poolsById(context.db, tenantId, ids)).load(id);
}

export function poolReference(reference: { id: string }, context: GraphContext): Promise<Pool | null> {
  return poolOf(context, reference.id);
}
