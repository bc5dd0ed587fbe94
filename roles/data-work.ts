import type { JobImplementation } from "../infra/queue/implement-job.ts";
import { housekeeping } from "../workers/reconcile/housekeeping.ts";
import type { Reconciler } from "../workers/reconcile/schedule.ts";
import type { Parts } from "./parts.ts";

/** The jobs of the data domain, a line each. */
export function dataJobs(_parts: Parts): JobImplementation[] {
  return [];
}

/** The reconcilers of the data domain, a line each. */
export function dataReconcilers({ db, clock, objects }: Parts): Reconciler[] {
  return [housekeeping({ db, clock, assets: objects.assets, results: objects.results })];
}
