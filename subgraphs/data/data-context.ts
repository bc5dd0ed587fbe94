import type { GraphContext } from "../../infra/graphql/context.ts";
import type { Wakeups } from "../../infra/live/wakeups.ts";
import type { FetchPort } from "../../infra/net/fetch-https.ts";
import type { PrivateExceptions } from "../../infra/net/public-address.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import type { RunResultsPort } from "../compute/published.ts";
import type { AssetLimits } from "./asset/asset-limits.ts";
import type { ImportStarter } from "./asset/import/import-starter.ts";
import type { SourceOrigins } from "./asset/import/open-source.ts";
import type { WandbOrigin } from "./connection/wandb-viewer.ts";
import type { SecretBox } from "./secret/secret-box.ts";

/** What the resolvers of data need beyond the common context; the composition root adds it to every request. */
export interface DataContext extends GraphContext {
  readonly data: {
    readonly secretBox: SecretBox;
    readonly assetLimits: AssetLimits;
    /** The store of assets alone. */
    readonly assetObjects: ObjectStore;
    /** How sources of imports are reached. */
    readonly sources: { readonly fetch: FetchPort; readonly origins: SourceOrigins };
    readonly imports: ImportStarter;
    /** Private hosts that the operator opened. */
    readonly exceptions: PrivateExceptions;
    readonly wakeups: Pick<Wakeups, "on" | "healthy">;
    /** What runs of workloads left behind. */
    readonly results: RunResultsPort;
    /** Where wandb connections are verified. */
    readonly wandb: WandbOrigin;
  };
}
