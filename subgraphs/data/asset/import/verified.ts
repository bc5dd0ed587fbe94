import { createHash } from "node:crypto";
import { Refused } from "../../../../infra/kernel/refusal.ts";
import { ASSET } from "../asset.refusals.ts";
import type { ListedFile } from "./hugging-face-files.ts";

/** The same bytes; refused as `checksum_mismatch` when they are not as many, or not those, that the listing promised. */
export async function* verified(
  content: AsyncIterable<Uint8Array>,
  { bytes: promised, sha256, gitSha1 }: ListedFile,
): AsyncGenerator<Uint8Array, void, undefined> {
  const hash = createHash(sha256 ? "sha256" : "sha1");
  if (!sha256) hash.update(`blob ${promised}\0`);
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.length;
    if (bytes > promised) throw new Refused(ASSET.checksum_mismatch);
    hash.update(chunk);
    yield chunk;
  }
  const wanted = sha256 ?? gitSha1;
  if (bytes !== promised || (wanted && hash.digest("hex") !== wanted)) throw new Refused(ASSET.checksum_mismatch);
}
