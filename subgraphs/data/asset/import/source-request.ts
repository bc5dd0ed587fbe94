import { isAssetName } from "../asset-name.ts";

/** What an import fetches, checked and in one spelling. */
export type SourceRequest = GithubRequest | HuggingFaceRequest | UrlRequest;

export interface GithubRequest {
  kind: "github";
  owner: string;
  repo: string;
  ref: string;
}

export interface HuggingFaceRequest {
  kind: "huggingface";
  type: "datasets" | "models";
  /** `owner/name`, or a name alone. */
  repo: string;
  ref: string;
  /** Patterns of the files to take; null for every file with a known data ending. */
  files: string[] | null;
}

export interface UrlRequest {
  kind: "url";
  /** May carry a signature in its query, so it is treated as a credential. */
  url: string;
}

/** What the asset is called until, and after, its source has been fetched. */
export function nameOf(source: SourceRequest): string {
  if (source.kind === "github") return source.repo;
  if (source.kind === "huggingface") return source.repo.split("/").at(-1)!;
  return fileNameOf(new URL(source.url));
}

/** The last step of a path as a file name; `download` when there is none that could be one. */
function fileNameOf(url: URL): string {
  const last = url.pathname.split("/").at(-1)!;
  try {
    const name = decodeURIComponent(last);
    return isAssetName(name) ? name : "download";
  } catch {
    return "download"; // an escape that is no UTF-8
  }
}
