import { Ctx, FieldResolver, Resolver, Root } from "type-graphql";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { Asset } from "../asset/asset.entity.ts";
import { QueryExport } from "./export.entity.ts";
import { exportsOfAssets } from "./exports-of-assets.ts";

@Resolver(() => Asset)
export class AssetExportResolver {
  @FieldResolver(() => QueryExport, {
    nullable: true,
    description: "The export that makes the asset; null for other assets, and once what a failed one left is gone.",
  })
  async export(@Root() asset: Asset, @Ctx() context: GraphContext): Promise<QueryExport | null> {
    if (asset.kind !== "connection_query") return null;
    const { tenantId } = actorOf(context, "data:read");
    return context
      .loader<string, QueryExport | null>("export", (ids) => exportsOfAssets(context.db, tenantId, ids))
      .load(asset.id);
  }

  @FieldResolver(() => String, {
    nullable: true,
    description:
      "Why it failed, for readers of one field: the word, and for the export of a query a colon and what to do about it.",
  })
  failure(@Root() { kind, error, errorMessage }: Asset): string | null {
    return error && errorMessage && kind === "connection_query" ? `${error}: ${errorMessage}` : error;
  }
}

@Resolver(() => QueryExport)
export class QueryExportResolver {
  @FieldResolver(() => String, {
    nullable: true,
    description: "What the export waits for; null while it waits for nothing.",
  })
  waitingReason(@Root() { state }: QueryExport): string | null {
    if (state === "pending") return "It waits for a worker that has nothing else to do.";
    return state === "cleanup" ? "It waits for the removal of what it left behind." : null;
  }
}
