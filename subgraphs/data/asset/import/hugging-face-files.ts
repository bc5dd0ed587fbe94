import { LIMITS } from "../../../../infra/kernel/limits.ts";
import { Refused } from "../../../../infra/kernel/refusal.ts";
import type { Fetched } from "../../../../infra/net/fetch-https.ts";
import { ASSET } from "../asset.refusals.ts";
import { odd, readJson } from "./source-answer.ts";

/** A file as a repository's listing describes it. */
export interface ListedFile {
  path: string;
  bytes: number;
  /** SHA-256 of the content for a large file; null for one that git keeps itself. */
  sha256: string | null;
  /** SHA-1 of git's blob; null for a large file, of which git keeps a pointer only. */
  gitSha1: string | null;
}

/** Every file below the address, page by page. Refused as `too_many_files` when there is no end to it. */
export async function listFiles(get: (url: URL) => Promise<Fetched>, first: URL): Promise<ListedFile[]> {
  const files: ListedFile[] = [];
  let rowCount = 0;
  for (let next: URL | null = first; next; ) {
    const page: Fetched = await get(next);
    const rows = await readJson(page);
    if (!Array.isArray(rows)) throw odd(page.url);
    files.push(...rows.flatMap((row) => listedFile(row, page.url)));
    rowCount += rows.length;
    if (rowCount > LIMITS.assetSourceFiles)
      throw new Refused(ASSET.too_many_files, {
        message: `A source may list ${LIMITS.assetSourceFiles} files and folders.`,
      });
    next = rows.length === 0 ? null : nextPage(page.headers.link, next);
  }
  return files;
}

function listedFile(row: unknown, url: URL): ListedFile[] {
  const { type, path, size, oid, lfs } = (row ?? {}) as Record<string, unknown>;
  if (type !== "file") return [];
  const large = lfs as { oid?: unknown; size?: unknown } | null | undefined;
  const bytes = large?.size ?? size;
  if (typeof path !== "string" || !Number.isSafeInteger(bytes) || (bytes as number) < 0) throw odd(url);
  return [
    {
      path,
      bytes: bytes as number,
      sha256: large && isHex(large.oid, 64) ? large.oid : null,
      gitSha1: !large && isHex(oid, 40) ? oid : null,
    },
  ];
}

function isHex(text: unknown, length: number): text is string {
  return typeof text === "string" && text.length === length && /^[0-9a-f]*$/.test(text);
}

/** The `next` of a link header. The listing stays where it began: the credential goes along. */
function nextPage(link: string | undefined, from: URL): URL | null {
  const target = /<([^>]+)>\s*;\s*rel="next"/.exec(link ?? "")?.[1];
  if (!target || !URL.canParse(target, from)) return null;
  const next = new URL(target, from);
  if (next.origin !== from.origin || next.href === from.href) throw odd(from);
  return next;
}
