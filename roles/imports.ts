import path from "node:path";
import { ASSET_LIMITS } from "../subgraphs/data/asset/asset-limits.ts";
import type { SourceOrigins } from "../subgraphs/data/asset/import/open-source.ts";
import { GithubAccounts } from "../subgraphs/data/github-account/github-accounts.ts";
import type { ImportDeps } from "../workers/data/fetch-import.ts";
import { RunningImports } from "../workers/data/running-imports.ts";
import type { Parts } from "./parts.ts";

/** Where this deployment's GitHub and Hugging Face are. */
export function sourceOrigins({ settings }: Parts): SourceOrigins {
  const bare = (url: string) => url.replace(/\/+$/, "");
  return { github: bare(settings.githubApiUrl), huggingFace: bare(settings.huggingFaceUrl) };
}

/** What fetches the sources of imports. */
export function importDeps(parts: Parts): ImportDeps {
  const { db, clock, fetch, objects, secretBox, logger, settings } = parts;
  return {
    ...{ db, clock, fetch, logger },
    origins: sourceOrigins(parts),
    objects: objects.assets,
    limits: ASSET_LIMITS,
    scratchDir: path.join(settings.dataDir, "scratch", "imports"),
    githubAccounts: new GithubAccounts(secretBox),
  };
}

/** Imports whose credentials this process is given; those that are under way when it stops are cut off. */
export function runningImports(parts: Parts): RunningImports {
  const running = new RunningImports(importDeps(parts));
  parts.drain.onClose("imports with credentials", () => running.close());
  return running;
}
