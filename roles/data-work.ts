import { openPost } from "../infra/net/post-https.ts";
import { PrivateExceptions } from "../infra/net/public-address.ts";
import type { JobImplementation } from "../infra/queue/implement-job.ts";
import { abandonedExports } from "../workers/data/abandoned-exports.ts";
import { deliverWebhookJob } from "../workers/data/deliver-webhook.ts";
import { dueDeliveries } from "../workers/data/due-deliveries.ts";
import { importAssetJob, importsReconciler } from "../workers/data/import-asset.ts";
import { pastDeliveries } from "../workers/data/past-deliveries.ts";
import { runExportJob } from "../workers/data/run-export.ts";
import { housekeeping } from "../workers/reconcile/housekeeping.ts";
import type { Reconciler } from "../workers/reconcile/schedule.ts";
import { exportDeps, exportScratch } from "./exports.ts";
import { importDeps } from "./imports.ts";
import type { Parts } from "./parts.ts";

/** The jobs of the data domain, a line each. */
export function dataJobs(parts: Parts): JobImplementation[] {
  const exceptions = new PrivateExceptions(parts.settings.allowPrivateHosts);
  return [
    deliverWebhookJob({ box: parts.secretBox, poster: openPost({ exceptions }), random: Math.random }),
    importAssetJob(importDeps(parts), parts.secretBox, parts.drain.began),
    runExportJob(exportDeps(parts)),
  ] as unknown as JobImplementation[];
}

/** The reconcilers of the data domain, a line each. */
export function dataReconcilers(parts: Parts): Reconciler[] {
  const { db, clock, objects } = parts;
  return [
    housekeeping({ db, clock, assets: objects.assets, results: objects.results }),
    dueDeliveries({ db, clock }),
    pastDeliveries({ db, clock }),
    importsReconciler({ db, clock }),
    abandonedExports({ db, clock, objects: objects.assets, scratchDir: exportScratch(parts) }),
  ];
}
