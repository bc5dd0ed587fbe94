import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { ArchiveLimits } from "./archive/entry.ts";

/** What one deployment allows. */
export interface AssetLimits {
  /** One upload, as sent. */
  importBytes: number;
  /** All assets of a team, as stored. */
  quotaBytes: number;
  importsAtOnce: number;
  archive: ArchiveLimits;
}

export const ASSET_LIMITS: AssetLimits = {
  importBytes: LIMITS.assetBytes,
  quotaBytes: LIMITS.assetQuotaBytes,
  importsAtOnce: LIMITS.assetImportsAtOnce,
  archive: {
    files: LIMITS.assetFiles,
    bytes: LIMITS.assetBytes,
    ratio: LIMITS.assetArchiveRatio,
    ratioFloorBytes: LIMITS.assetArchiveRatioFloorBytes,
  },
};
