import { DONE, implementJob, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { settleAbandonedImports } from "../../subgraphs/data/asset/import/import.commands.ts";
import { claimImport } from "../../subgraphs/data/asset/import/import-claim.ts";
import { importAsset } from "../../subgraphs/data/jobs.ts";
import type { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";
import type { Reconciler } from "../reconcile/schedule.ts";
import { fetchImport, type ImportDeps } from "./fetch-import.ts";

/** Does an import that needs no credential of its caller. A second run finds it taken, or over, and leaves it alone. */
export function importAssetJob(
  deps: Omit<ImportDeps, "db" | "clock" | "logger">,
  box: SecretBox,
): JobImplementation<{ assetId: string }> {
  return implementJob(importAsset, async ({ assetId }, { db, clock, logger, signal }) => {
    const claim = await claimImport(db, box, assetId, clock.now());
    if (claim) await fetchImport({ ...deps, db, clock, logger }, claim, { token: null, stopping: signal });
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
