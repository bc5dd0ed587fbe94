import type { Driver } from "../infra/drivers/driver.ts";
import { parseAccelerators } from "../infra/drivers/local/accelerators.ts";
import { LocalDriver } from "../infra/drivers/local/local-driver.ts";
import { openQueue } from "../infra/queue/connection.ts";
import type { JobImplementation } from "../infra/queue/implement-job.ts";
import { startWorkers } from "../infra/queue/workers.ts";
import { hostFolder } from "../infra/runner/host/host-folder.ts";
import { keepEndingOrphans } from "../infra/runner/isolation/orphans.ts";
import type { OfferMarket } from "../subgraphs/compute/offer/offer-market.ts";
import type { ComputeSettings } from "../subgraphs/compute/settings.ts";
import { assetPins } from "../subgraphs/data/asset/asset-pins.ts";
import { connectionPins } from "../subgraphs/data/connection/connection-pins.ts";
import { closeWorkloadJob } from "../workers/compute/close-workload.ts";
import { commitLogJob } from "../workers/compute/commit-log.ts";
import type { ComputeWorkerDeps } from "../workers/compute/compute-workers.ts";
import { enforceDeadlineJob } from "../workers/compute/enforce-deadline.ts";
import { createLauncher } from "../workers/compute/launch-order.ts";
import { createPlacer, placeStageJob } from "../workers/compute/place-stage.ts";
import { releaseAttemptJob } from "../workers/compute/release-attempt.ts";
import { settlePlacementJob } from "../workers/compute/settle-placement.ts";
import { superviseBootJob } from "../workers/compute/supervise-boot.ts";
import { attemptsReconciler } from "../workers/reconcile/attempts.ts";
import { booksReconciler } from "../workers/reconcile/books.ts";
import { leaseReconciler } from "../workers/reconcile/expired-leases.ts";
import { offersReconciler } from "../workers/reconcile/offers.ts";
import { orphansReconciler } from "../workers/reconcile/orphans.ts";
import { keptFor, retention } from "../workers/reconcile/retention.ts";
import { startReconcilers } from "../workers/reconcile/schedule.ts";
import { setBackClock } from "../workers/reconcile/set-back-clock.ts";
import { unfinishedReconciler } from "../workers/reconcile/unfinished-business.ts";
import { waitingStagesReconciler } from "../workers/reconcile/waiting-stages.ts";
import { startRelay } from "../workers/relay.ts";
import { awaitedTimes } from "./awaited-times.ts";
import { buildVersion } from "./build-version.ts";
import { dataJobs, dataReconcilers } from "./data-work.ts";
import type { Parts } from "./parts.ts";

/** Work that is going on in this process. */
export interface Work {
  /** The machine itself as a supplier; null when the deployment uses none. */
  local: LocalDriver | null;
  /** Resolves when the queue answers. */
  pingQueue(): Promise<void>;
  /** Names of suppliers that answered lately. */
  suppliers(): Promise<string[]>;
}

const HELD_STEPS = "Steps of reconcilers that waited in vain for rows that others hold; each is tried again.";

/** Starts the relay, the workers of all jobs and the reconcilers. */
export async function startWork(parts: Parts, settings: ComputeSettings, market: OfferMarket): Promise<Work> {
  const { db, clock, logger, drain, wakeups } = parts;
  const random = Math.random;
  drain.onClose("orphans", await keepEndingOrphans((message) => logger.warn(message)));
  const queue = await openQueue({
    databaseUrl: parts.databaseUrl,
    redisUrl: parts.settings.redisUrl ?? undefined,
    logger,
  });
  drain.onClose("queue", () => queue.close());
  const local = parts.settings.localCapacity === "off" ? null : localDriver(parts, settings);
  drain.onClose("local driver", () => local?.close());
  const drivers = new Map<string, Driver>(local ? [[local.supplier, local]] : []);
  const deps: ComputeWorkerDeps = {
    db,
    clock,
    settings,
    market,
    runnerKey: parts.keys.runner,
    random,
    logger,
    wakeups,
    drivers,
  };
  const placer = createPlacer(deps);
  const jobs = [
    placeStageJob(deps, placer),
    superviseBootJob(deps),
    releaseAttemptJob(deps),
    settlePlacementJob,
    commitLogJob(parts.objects.results),
    closeWorkloadJob({ assets: assetPins, secrets: parts.secretPins, connections: connectionPins }),
    enforceDeadlineJob,
    ...dataJobs(parts),
  ] as unknown as JobImplementation[];
  const runs = parts.metrics.duration("nodus_job_seconds", "Time that runs of jobs took.", ["job", "outcome"]);
  const workers = startWorkers(jobs, {
    queue,
    db,
    clock,
    logger,
    random,
    onRun: (run) => runs.observe({ job: run.job, outcome: run.outcome }, run.durationMs / 1000),
  });
  drain.onClose("workers", () => workers.close(), 30_000);
  const definitions = jobs.map((job) => job.definition);
  const relay = startRelay({ db, queue, wakeups, definitions, clock, logger, random });
  drain.onClose("relay", () => relay.close());
  const held = parts.metrics.counter("nodus_held_steps_total", HELD_STEPS, ["reconciler"]);
  const reconcilers = startReconcilers(
    [
      ...[...drivers.values()].flatMap((driver) => [offersReconciler(deps, driver), orphansReconciler(deps, driver)]),
      waitingStagesReconciler(deps, placer),
      attemptsReconciler(deps, createLauncher(deps)),
      leaseReconciler(deps),
      unfinishedReconciler(deps),
      booksReconciler(deps),
      setBackClock({ ...deps, times: awaitedTimes(settings) }),
      ...dataReconcilers(parts),
      retention({
        ...{ db, clock, logger, ...parts.objects },
        kept: keptFor(parts.settings.resultRetentionDays),
        knownJobs: definitions.map((definition) => definition.name),
      }),
    ],
    { clock, logger, wakeups, random, onHeld: (reconciler, steps) => held.inc({ reconciler }, steps) },
  );
  drain.onClose("reconcilers", () => reconcilers.close());
  return { local, pingQueue: () => queue.ping(), suppliers: () => lively(parts) };
}

function localDriver(parts: Parts, settings: ComputeSettings): LocalDriver {
  return new LocalDriver({
    host: {
      folder: hostFolder(parts.settings.dataDir),
      allowUnisolated: parts.settings.allowUnisolated,
      version: buildVersion(),
      idleExitMs: 600_000,
      attachOnly: parts.settings.localCapacity === "attach",
    },
    intakeUrl: settings.intakeUrl,
    machineId: "machine",
    region: parts.settings.region,
    rateMicrosPerHour: parts.settings.localRateMicrosPerHour,
    declaredAccelerators: parseAccelerators(
      parts.settings.localAccelerators.map(({ family, count }) => `${family}:${count}`).join(","),
    ),
    useInstalledGpus: true,
  });
}

/** A supplier that was seen this recently counts as there. */
const LIVELY_MS = 60_000;

async function lively(parts: Parts): Promise<string[]> {
  const rows = await parts.db.sql<{ id: string }>("select id from compute.supplier where seen_at > $1", [
    new Date(parts.clock.now().getTime() - LIVELY_MS),
  ]);
  return rows.map((row) => row.id);
}
