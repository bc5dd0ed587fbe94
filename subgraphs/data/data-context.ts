import type { GraphContext } from "../../infra/graphql/context.ts";
import type { AssetLimits } from "./asset/asset-limits.ts";
import type { SecretBox } from "./secret/secret-box.ts";

/** What the resolvers of data need beyond the common context; the composition root adds it to every request. */
export interface DataContext extends GraphContext {
  readonly data: { readonly secretBox: SecretBox; readonly assetLimits: AssetLimits };
}
