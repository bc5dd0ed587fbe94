import { Refused } from "../../../../infra/kernel/refusal.ts";
import { ASSET } from "../asset.refusals.ts";
import type { ArchiveKind } from "./entry.ts";

const SUPPORTED: readonly [ending: RegExp, kind: ArchiveKind][] = [
  [/\.zip$/i, "zip"],
  [/\.tar$/i, "tar"],
  [/\.(tar\.gz|tgz)$/i, "tar.gz"],
  [/\.(tar\.zst|tzst)$/i, "tar.zst"],
];
/** Archives that people expect to be unpacked and that are not; kept as files they would only surprise later. */
const UNSUPPORTED = /\.(rar|7z|cab|arj|lzh|cpio|tbz2?|txz|tlz|tar\.(bz2|xz|lz|lz4|lzma|lzo|br|z))$/i;

/** What a file name's ending says: an archive to unpack, or null for a file to keep as it is. `field` is to blame for one that cannot be unpacked. */
export function archiveKindOf(name: string, field = "/name"): ArchiveKind | null {
  if (UNSUPPORTED.test(name)) throw new Refused(ASSET.unsupported_archive, { field });
  return SUPPORTED.find(([ending]) => ending.test(name))?.[1] ?? null;
}
