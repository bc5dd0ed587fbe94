import { confinementFound } from "../infra/columnar/run-columnar.ts";
import { openPost } from "../infra/net/post-https.ts";
import { PrivateExceptions } from "../infra/net/public-address.ts";
import type { JobImplementation } from "../infra/queue/implement-job.ts";
import { abandonedExports } from "../workers/data/abandoned-exports.ts";
import { abandonedLoads } from "../workers/data/abandoned-loads.ts";
import { deliverWebhookJob } from "../workers/data/deliver-webhook.ts";
import { dueDeliveries } from "../workers/data/due-deliveries.ts";
import { importAssetJob, importsReconciler } from "../workers/data/import-asset.ts";
import { loadOutputJob } from "../workers/data/load-output.ts";
import { pastDeliveries } from "../workers/data/past-deliveries.ts";
import { recordRunJob } from "../workers/data/record-run.ts";
import { runExportJob } from "../workers/data/run-export.ts";
import { housekeeping } from "../workers/reconcile/housekeeping.ts";
import type { Reconciler } from "../workers/reconcile/schedule.ts";
import { exportDeps, exportScratch } from "./exports.ts";
import { importDeps } from "./imports.ts";
import { loadDeps } from "./loads.ts";
import type { Parts } from "./parts.ts";

/** The jobs of the data domain, a line each. */
export function dataJobs(parts: Parts): JobImplementation[] {
  const exceptions = new PrivateExceptions(parts.settings.allowPrivateHosts);
  void confinementFound.then((confinement) => {
    if (confinement.level !== "none") parts.logger.info({ confinement }, "table files are read in a confined process");
    else parts.logger.warn({ confinement }, "table files are read in a process that bubblewrap does not confine");
  });
  return [
    deliverWebhookJob({ box: parts.secretBox, poster: openPost({ exceptions }), random: Math.random }),
    importAssetJob(importDeps(parts), parts.secretBox, parts.drain.began),
    runExportJob(exportDeps(parts)),
    loadOutputJob(loadDeps(parts)),
    recordRunJob(loadDeps(parts)),
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
    abandonedLoads({ db, clock, ...loadDeps(parts) }),
  ];
}
