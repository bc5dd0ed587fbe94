import path from "node:path";
import { PrivateExceptions } from "../infra/net/public-address.ts";
import { runResults } from "../subgraphs/compute/output/run-results.port.ts";
import type { LoadOutputDeps } from "../workers/data/load-output.ts";
import type { Parts } from "./parts.ts";

/** What loads outputs into tables. */
export function loadDeps(parts: Parts): LoadOutputDeps {
  return {
    secretBox: parts.secretBox,
    exceptions: new PrivateExceptions(parts.settings.allowPrivateHosts),
    objects: parts.objects.results,
    results: runResults,
    // Of this machine, and swept by it.
    scratchDir: path.join(parts.settings.dataDir, "scratch", "loads"),
    leaving: parts.drain.began,
  };
}
