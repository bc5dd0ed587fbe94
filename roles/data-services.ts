import { PrivateExceptions } from "../infra/net/public-address.ts";
import { runResults } from "../subgraphs/compute/output/run-results.port.ts";
import { ASSET_LIMITS } from "../subgraphs/data/asset/asset-limits.ts";
import type { DataContext } from "../subgraphs/data/data-context.ts";
import { runningImports, sourceOrigins } from "./imports.ts";
import type { Parts } from "./parts.ts";

/** What the resolvers of data are given beyond the common context. */
export function dataServices(parts: Parts): DataContext["data"] {
  return {
    secretBox: parts.secretBox,
    assetLimits: ASSET_LIMITS,
    assetObjects: parts.objects.assets,
    sources: { fetch: parts.fetch, origins: sourceOrigins(parts) },
    imports: runningImports(parts),
    exceptions: new PrivateExceptions(parts.settings.allowPrivateHosts),
    wakeups: parts.wakeups,
    results: runResults,
    wandb: { origin: "https://api.wandb.ai" },
  };
}
