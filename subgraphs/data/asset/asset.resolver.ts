import {
  Arg,
  Ctx,
  Field,
  FieldResolver,
  ID,
  InputType,
  Int,
  Mutation,
  ObjectType,
  Query,
  Resolver,
  Root,
} from "type-graphql";
import { connectionOf, FIRST, type Page, page, pageSize } from "../../../infra/graphql/connection.ts";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { SafeInt } from "../../../infra/graphql/scalars.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import type { DataContext } from "../data-context.ts";
import { assetsById, listAssets, useCounts } from "./asset.commands.ts";
import { Asset } from "./asset.entity.ts";
import { storageUse } from "./asset-space.ts";
import { deleteAsset } from "./delete-asset.ts";

const AssetConnection = connectionOf(Asset, "Asset");

@ObjectType({ description: "What a team's assets take, and what they may take." })
export class AssetStorage {
  @Field(() => SafeInt, { description: "Most bytes of one upload or import.", simple: true }) maxImportBytes!: number;
  @Field(() => SafeInt, { description: "Most bytes of all assets, as stored.", simple: true })
  storageQuotaBytes!: number;
  @Field(() => SafeInt, { description: "Bytes of uploads that are under way.", simple: true }) stagedBytes!: number;
  @Field(() => SafeInt, { description: "Bytes of assets that are not deleted.", simple: true }) storedBytes!: number;
  @Field(() => Boolean, { description: "Whether storage is charged; it never is.", simple: true })
  billingEnabled!: boolean;
}

@InputType({ description: "The asset to delete." })
export class DeleteAssetInput {
  @Field(() => ID, { description: "The asset's id." }) id!: string;
}

@ObjectType({ description: "The asset that was deleted." })
export class DeleteAssetPayload {
  @Field(() => Asset, { description: "The asset, readable for 30 more days.", simple: true }) asset!: Asset;
}

@Resolver(() => Asset)
export class AssetResolver {
  @Query(() => AssetConnection, { description: "The team's assets, newest first, without deleted ones." })
  assets(
    @Ctx() context: GraphContext,
    @Arg("first", FIRST.type, FIRST.options) first: number | null,
    @Arg("after", () => String, { nullable: true, description: "Go on after this cursor." }) after: string | null,
  ): Promise<Page<Asset>> {
    const { tenantId } = actorOf(context, "data:read");
    return page<Asset>({
      list: "assets",
      first: pageSize(first, LIMITS.assetListMax),
      after,
      keyLength: 1,
      keyOf: (a) => [a.id],
      read: (key, limit) => listAssets(context.db, tenantId, key ? String(key[0]) : null, limit),
    });
  }

  @Query(() => Asset, {
    nullable: true,
    description: "An asset of the team; a deleted one for 30 days. Refused as `not_found`.",
  })
  async asset(
    @Arg("id", () => ID, { description: "The asset's id." }) id: string,
    @Ctx() context: GraphContext,
  ): Promise<Asset> {
    const asset = await assetOf(context, id);
    if (!asset) throw new Refused(COMMON.not_found);
    return asset;
  }

  @FieldResolver(() => Int, {
    description: "How many workloads, sandboxes and the like hold it; it cannot be deleted then.",
  })
  useCount(@Root() asset: Asset, @Ctx() context: GraphContext): Promise<number> {
    const { tenantId } = actorOf(context, "data:read");
    return context
      .loader<string, number>("assetUseCount", (ids) => useCounts(context.db, tenantId, ids))
      .load(asset.id);
  }

  @Query(() => AssetStorage, { description: "What the team's assets take, and what they may take." })
  async assetStorage(@Ctx() context: DataContext): Promise<AssetStorage> {
    const { tenantId } = actorOf(context, "data:read");
    const { importBytes, quotaBytes } = context.data.assetLimits;
    const use = await storageUse(context.db, tenantId, context.clock.now());
    return { maxImportBytes: importBytes, storageQuotaBytes: quotaBytes, ...use, billingEnabled: false };
  }

  @Mutation(() => DeleteAssetPayload, {
    description:
      "Deletes an asset that nothing uses. Repeat it when it fails: the asset is `deleting` until it is done.",
  })
  async deleteAsset(
    @Arg("input", () => DeleteAssetInput, { description: "The asset to delete." }) input: DeleteAssetInput,
    @Ctx() context: DataContext,
  ): Promise<DeleteAssetPayload> {
    const actor = actorOf(context, "data:write");
    const deps = { db: context.db, objects: context.data.assetObjects, clock: context.clock };
    return { asset: await deleteAsset(deps, actor, input.id) };
  }
}

/** A readable asset of the caller's team, read in batches; null for anything else. */
async function assetOf(context: GraphContext, id: string): Promise<Asset | null> {
  const { tenantId } = actorOf(context, "data:read");
  if (!isId("asset", id)) return null;
  return context
    .loader<string, Asset | null>("asset", (ids) => assetsById(context.db, tenantId, ids, context.clock.now()))
    .load(id);
}

export function assetReference(reference: { id: string }, context: GraphContext): Promise<Asset | null> {
  return assetOf(context, reference.id);
}
