import { DONE, implementJob, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { settleAbandonedImports } from "../../subgraphs/data/asset/import/import.commands.ts";
import { claimImport } from "../../subgraphs/data/asset/import/import-claim.ts";
import { importAsset } from "../../subgraphs/data/jobs.ts";
import type { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";
import type { Reconciler } from "../reconcile/schedule.ts";
import { fetchImport, type ImportDeps } from "./fetch-import.ts";

/**
 * Does an import that needs no credential of its caller. A second run finds it taken, or over, and leaves it alone.
 * `leaving` aborts as soon as the process is to stop: other jobs may end in peace, but a source may take minutes, and
 * another process can do it.
 */
export function importAssetJob(
  deps: Omit<ImportDeps, "db" | "clock" | "logger">,
  box: SecretBox,
  leaving: AbortSignal,
): JobImplementation<{ assetId: string }> {
  return implementJob(importAsset, async ({ assetId }, { db, clock, logger, signal }) => {
    if (leaving.aborted) return { outcome: "retry", reason: "this process is about to stop" };
    const claim = await claimImport(db, box, assetId, clock.now());
    const stopping = AbortSignal.any([signal, leaving]);
    if (claim) await fetchImport({ ...deps, db, clock, logger }, claim, { token: null, stopping });
    return DONE;
  });
}

const EVERY_MS = 15_000;

/** Finds imports whose process is gone: another takes them up, or they have failed. */
export function importsReconciler({ db, clock }: Pick<ImportDeps, "db" | "clock">): Reconciler {
  return {
    name: "imports",
    everyMs: EVERY_MS,
    run: async () => {
      await settleAbandonedImports(db, clock.now());
    },
  };
}
