import type { Driver } from "../../infra/drivers/driver.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import type { ComputeWorkerDeps } from "../../workers/compute/compute-workers.ts";
import { createLauncher } from "../../workers/compute/launch-order.ts";
import type { createPlacer } from "../../workers/compute/place-stage.ts";
import { dueDeliveries } from "../../workers/data/due-deliveries.ts";
import { pastDeliveries } from "../../workers/data/past-deliveries.ts";
import { attemptsReconciler } from "../../workers/reconcile/attempts.ts";
import { booksReconciler } from "../../workers/reconcile/books.ts";
import { leaseReconciler } from "../../workers/reconcile/expired-leases.ts";
import { offersReconciler } from "../../workers/reconcile/offers.ts";
import { orphansReconciler } from "../../workers/reconcile/orphans.ts";
import { retention } from "../../workers/reconcile/retention.ts";
import type { Reconciler } from "../../workers/reconcile/schedule.ts";
import { setBackClock } from "../../workers/reconcile/set-back-clock.ts";
import { unfinishedReconciler } from "../../workers/reconcile/unfinished-business.ts";
import { waitingStagesReconciler } from "../../workers/reconcile/waiting-stages.ts";
import { awaitedTimes } from "../awaited-times.ts";
import { SIMULATED_KEPT } from "./settings.ts";

/** Offers have to be asked for more often than a supplier counts as silent; a round comes up to a quarter late. */
const OFFERS_EVERY_MS = (2 / 3) * LIMITS.supplierSilentMs;
/** Often enough for what is kept for minutes. */
const RETENTION_EVERY_MS = 2 * 60_000;
/** No assets are made in a simulated world. */
const NO_ASSETS = { list: async () => [] };

export interface Reconciled {
  driver: Driver;
  placer: ReturnType<typeof createPlacer>;
  /** The store of results. */
  results: Pick<ObjectStore, "list" | "remove">;
  /** Names of all jobs. */
  knownJobs: readonly string[];
}

/**
 * The reconcilers of a simulated process. They look more rarely than in a deployment: most looks find nothing and still
 * cost real time.
 */
export function simulatedReconcilers(
  deps: ComputeWorkerDeps,
  { driver, placer, results, knownJobs }: Reconciled,
): Reconciler[] {
  const kept = SIMULATED_KEPT;
  return [
    { ...offersReconciler(deps, driver), everyMs: OFFERS_EVERY_MS },
    { ...retention({ ...deps, assets: NO_ASSETS, results, kept, knownJobs }), everyMs: RETENTION_EVERY_MS },
    ...unhurried([
      orphansReconciler(deps, driver),
      waitingStagesReconciler(deps, placer),
      attemptsReconciler(deps, createLauncher(deps)),
      leaseReconciler(deps),
      unfinishedReconciler(deps),
      booksReconciler(deps),
      dueDeliveries(deps),
      pastDeliveries(deps),
      setBackClock({ ...deps, times: awaitedTimes(deps.settings) }),
    ]),
  ];
}

/** They look 8 to 20 times more rarely; what looks every second does so every 20. */
function unhurried(reconcilers: readonly Reconciler[]): Reconciler[] {
  const pace = (everyMs: number) => Math.min(everyMs * 20, Math.max(everyMs * 8, 30_000));
  return reconcilers.map((reconciler) => ({ ...reconciler, everyMs: pace(reconciler.everyMs) }));
}
