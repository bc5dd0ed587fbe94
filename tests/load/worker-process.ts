import { Database } from "../../infra/db/database.ts";
import { SimulatedDriver } from "../../infra/drivers/simulated/simulated-driver.ts";
import { systemClock } from "../../infra/kernel/clock.ts";
import { openWakeups } from "../../infra/live/open-wakeups.ts";
import { openQueue } from "../../infra/queue/connection.ts";
import type { JobImplementation } from "../../infra/queue/implement-job.ts";
import { startWorkers } from "../../infra/queue/workers.ts";
import { Drain } from "../../infra/telemetry/drain.ts";
import { readSettings } from "../../infra/telemetry/environment.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { allEntities } from "../../roles/entities.ts";
import { takeEvents } from "../../roles/take-events.ts";
import { OfferMarket } from "../../subgraphs/compute/offer/offer-market.ts";
import type { ComputeWorkerDeps } from "../../workers/compute/compute-workers.ts";
import { createPlacer, placeStageJob } from "../../workers/compute/place-stage.ts";
import { superviseBootJob } from "../../workers/compute/supervise-boot.ts";
import { offersReconciler } from "../../workers/reconcile/offers.ts";
import { startReconcilers } from "../../workers/reconcile/schedule.ts";
import { waitingStagesReconciler } from "../../workers/reconcile/waiting-stages.ts";
import { startRelay } from "../../workers/relay.ts";
import { benchSettings, machineKinds, silentMarket, WORKER_OFFERS } from "./bench-data.ts";

const DATABASE_POOL = 8;
/** Longer than the bench runs: silent machines are not given up meanwhile. */
const BOOT_MS = 3_600_000;

/** A worker process of the platform as far as placement needs it, with a supplier whose machines come up and stay silent. */
async function work(): Promise<void> {
  const { databaseUrl, redisUrl } = readSettings();
  const url = databaseUrl!;
  const stores = { databaseUrl: url, redisUrl: redisUrl ?? undefined };
  const logger = createLogger({ level: "error", role: "bench" });
  const drain = new Drain(logger);
  const end = () => void drain.close().then(() => process.exit(0));
  process.once("SIGTERM", end).once("SIGINT", end).once("disconnect", end);
  const db = await Database.open({ url, entities: allEntities, poolSize: DATABASE_POOL });
  drain.onClose("database", () => db.close());
  const wakeups = await openWakeups({ ...stores, logger });
  drain.onClose("wake-ups", () => wakeups.close());
  db.announceTo((topic) => wakeups.announce(topic));
  db.offerTo(takeEvents);
  const queue = await openQueue({ ...stores, logger });
  drain.onClose("queue", () => queue.close());
  const random = Math.random;
  const market = silentMarket(machineKinds(WORKER_OFFERS));
  const driver = new SimulatedDriver({ market, random, misbehaviour: { mute: 1 } });
  const deps: ComputeWorkerDeps = {
    ...{ db, clock: systemClock, market: new OfferMarket(), random, logger, wakeups },
    settings: { ...benchSettings(), bootTimeoutMs: BOOT_MS },
    runnerKey: new Uint8Array(32),
    drivers: new Map([[driver.supplier, driver]]),
  };
  const placer = createPlacer(deps);
  const jobs = [placeStageJob(deps, placer), superviseBootJob(deps)] as unknown as JobImplementation[];
  const common = { db, clock: systemClock, logger, random, queue };
  const workers = startWorkers(jobs, common);
  drain.onClose("workers", () => workers.close());
  const relay = startRelay({ ...common, wakeups, definitions: jobs.map(({ definition }) => definition) });
  drain.onClose("relay", () => relay.close());
  const reconcilers = startReconcilers([offersReconciler(deps, driver), waitingStagesReconciler(deps, placer)], {
    ...common,
    wakeups,
  });
  drain.onClose("reconcilers", () => reconcilers.close());
  process.send!({ origin: "" });
}

await work();
