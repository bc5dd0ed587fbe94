import type { GraphContext } from "../../infra/graphql/context.ts";
import type { Wakeups } from "../../infra/live/wakeups.ts";
import type { PrivateExceptions } from "../../infra/net/public-address.ts";
import type { AssetLimits } from "./asset/asset-limits.ts";
import type { WandbOrigin } from "./connection/wandb-viewer.ts";
import type { SecretBox } from "./secret/secret-box.ts";

/** What the resolvers of data need beyond the common context; the composition root adds it to every request. */
export interface DataContext extends GraphContext {
  readonly data: {
    readonly secretBox: SecretBox;
    readonly assetLimits: AssetLimits;
    /** Private hosts that the operator opened. */
    readonly exceptions: PrivateExceptions;
    readonly wakeups: Pick<Wakeups, "on" | "healthy">;
    /** Where wandb connections are verified. */
    readonly wandb: WandbOrigin;
  };
}
