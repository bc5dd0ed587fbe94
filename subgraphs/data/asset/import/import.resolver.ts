import { Arg, Ctx, Field, ID, InputType, Int, Mutation, ObjectType, Resolver, Root, Subscription } from "type-graphql";
import { closed, enumOf } from "../../../../infra/db/closed.ts";
import { actorOf } from "../../../../infra/graphql/context.ts";
import { COMMON, Refused } from "../../../../infra/kernel/refusal.ts";
import type { DataContext } from "../../data-context.ts";
import { EXPORT_FORMATS } from "../../export/export.entity.ts";
import { requestExport } from "../../export/request-export.ts";
import { opening } from "../../opening.ts";
import { Asset } from "../asset.entity.ts";
import { AssetChange, followAsset } from "../asset-stream.ts";
import { admitImport } from "./admit-import.ts";
import { readSourceImport, requireMembersOf } from "./read-import.ts";

export const IMPORT_KINDS = closed("AssetImportKind", "Where an import comes from.", [
  "github",
  "huggingface",
  "url",
  "connection_query",
]);

const optional = (description: string) => ({ nullable: true, description });

@InputType({ description: "What to import. A member that the kind does not take is refused." })
export class ImportAssetInput {
  @Field(() => enumOf(IMPORT_KINDS), { description: "Where it comes from." }) kind!: (typeof IMPORT_KINDS)[number];
  @Field(() => String, optional("For `url`: a public HTTPS address. A signed link for a private file."))
  url?: string | null;
  @Field(() => String, optional("For `github` and `huggingface`: `owner/name`, or the matching HTTPS address."))
  repo?: string | null;
  @Field(() => String, optional("Branch, tag or commit; `main` unless given.")) ref?: string | null;
  @Field(
    () => [String],
    optional("For `huggingface`: patterns of the files to take; those with a known data ending unless given."),
  )
  files?: string[] | null;
  @Field(
    () => String,
    optional("A credential for `github` or `huggingface`, used for this import only and never stored."),
  )
  token?: string | null;
  @Field(() => String, optional("For `connection_query`: the connection, by name or id.")) connectionId?: string | null;
  @Field(() => String, optional("For `connection_query`: one SELECT or WITH statement.")) sql?: string | null;
  @Field(
    () => enumOf(EXPORT_FORMATS),
    optional("For `connection_query`: the format of the file; parquet unless given."),
  )
  format?: (typeof EXPORT_FORMATS)[number] | null;
  @Field(() => String, optional("For `connection_query`: the branch that the connection must have been verified with."))
  branch?: string | null;
  @Field(() => Boolean, optional("For `connection_query`: take a ready result of the last day if there is one."))
  reuse?: boolean | null;
}

@ObjectType({ description: "An import that was admitted." })
export class ImportAssetPayload {
  @Field(() => Asset, { description: "The asset. It is importing, unless it was there already.", simple: true })
  asset!: Asset;
  @Field(() => Boolean, { description: "A ready export was taken again, and nothing is fetched.", simple: true })
  reused!: boolean;
}

@Resolver(() => Asset)
export class AssetImportResolver {
  @Mutation(() => ImportAssetPayload, {
    description:
      "Admits an import and answers at once; it goes on whoever waits. Follow it with `assetUpdates`, or read the asset. Sent twice it imports twice.",
  })
  async importAsset(
    @Arg("input", () => ImportAssetInput, { description: "What to import." }) input: ImportAssetInput,
    @Ctx() context: DataContext,
  ): Promise<ImportAssetPayload> {
    const actor = actorOf(context, "data:write");
    const { secretBox, assetLimits, imports } = context.data;
    const deps = { db: context.db, box: secretBox, limits: assetLimits };
    const now = context.clock.now();
    requireMembersOf(input);
    if (input.kind === "connection_query") return requestExport(deps, actor, input, now);
    const request = readSourceImport(input);
    const { asset, claim } = await admitImport(deps, actor, request, now);
    if (claim && request.token) imports.start(claim, request.token);
    return { asset, reused: false };
  }

  @Subscription(() => AssetChange, {
    description: "An asset's state and progress as they change, until it is ready, failed or deleted.",
    subscribe: opening<{ assetId: string; after: number | null }, AssetChange>((args, context) => {
      const { tenantId } = actorOf(context, "data:read");
      if ((args.after ?? 0) < 0) throw new Refused(COMMON.invalid_cursor, { field: "/after" });
      const source = { db: context.db, wakeups: context.data.wakeups };
      return followAsset(source, { tenantId, assetId: args.assetId, after: args.after ?? 0 });
    }),
  })
  assetUpdates(
    @Root() change: AssetChange,
    @Arg("assetId", () => ID, { description: "The asset." }) _assetId: string,
    @Arg("after", () => Int, {
      nullable: true,
      description: "Go on after the item of this cursor; from now unless given.",
    })
    _after: number | null,
  ): AssetChange {
    return change;
  }
}
