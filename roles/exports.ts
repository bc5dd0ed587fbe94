import path from "node:path";
import { PrivateExceptions } from "../infra/net/public-address.ts";
import { ASSET_LIMITS } from "../subgraphs/data/asset/asset-limits.ts";
import type { RunExportDeps } from "../workers/data/run-export.ts";
import type { Parts } from "./parts.ts";

/** Where exports of this machine put what is on its way. */
export function exportScratch({ settings }: Parts): string {
  return path.join(settings.dataDir, "scratch", "exports");
}

/** What runs the queries of exports. */
export function exportDeps(parts: Parts): RunExportDeps {
  return {
    secretBox: parts.secretBox,
    exceptions: new PrivateExceptions(parts.settings.allowPrivateHosts),
    objects: parts.objects.assets,
    limits: ASSET_LIMITS,
    scratchDir: exportScratch(parts),
    leaving: parts.drain.began,
  };
}
