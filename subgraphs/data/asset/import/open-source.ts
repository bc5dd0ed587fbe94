import type { FetchPort } from "../../../../infra/net/fetch-https.ts";
import type { AssetLimits } from "../asset-limits.ts";
import type { ByteMeter } from "../byte-meter.ts";
import type { Content } from "../store-content.ts";
import { openGithub } from "./github-source.ts";
import { openHuggingFace } from "./hugging-face-source.ts";
import type { SourceRequest } from "./source-request.ts";
import { openUrl } from "./url-source.ts";

/** Where the services are; tests put servers of their own there. */
export interface SourceOrigins {
  /** GitHub's API, without a slash at the end. */
  github: string;
  huggingFace: string;
}

/** What a source needs to be fetched. */
export interface SourceDeps {
  fetch: FetchPort;
  origins: SourceOrigins;
  limits: AssetLimits;
}

/** One fetch of a source. */
export interface SourceAsk {
  /** The credential for the service; null for none. */
  token: string | null;
  signal: AbortSignal;
  /** Every byte of content goes through it. */
  meter: ByteMeter;
}

/** A source that answered; its content comes while it is read. */
export interface OpenedSource {
  /** The exact revision that is fetched; null where a source has none. */
  revision: string | null;
  content: Content;
}

/** @throws a refusal (`source_…`, `asset_too_large`, `too_many_files`), `FetchFailed`, or the signal's reason */
export function openSource(deps: SourceDeps, source: SourceRequest, ask: SourceAsk): Promise<OpenedSource> {
  switch (source.kind) {
    case "github":
      return openGithub(deps, source, ask);
    case "huggingface":
      return openHuggingFace(deps, source, ask);
    case "url":
      return openUrl(deps, source, ask);
  }
}
