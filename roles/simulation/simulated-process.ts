import type { Database } from "../../infra/db/database.ts";
import type { Driver } from "../../infra/drivers/driver.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { Sleepers } from "../../infra/live/wakeups.ts";
import type { PostPort } from "../../infra/net/post-https.ts";
import { PrivateExceptions } from "../../infra/net/public-address.ts";
import { ELSEWHERE } from "../../infra/objects/storage-space.ts";
import type { JobToPublish } from "../../infra/queue/connection.ts";
import type { JobDefinition } from "../../infra/queue/define-job.ts";
import type { JobImplementation } from "../../infra/queue/implement-job.ts";
import { RunAgain, runJob } from "../../infra/queue/run-job.ts";
import type { Logger } from "../../infra/telemetry/logger.ts";
import { createIntake, type Intake } from "../../intake/session-hub.ts";
import { OfferMarket } from "../../subgraphs/compute/offer/offer-market.ts";
import type { ComputeSettings } from "../../subgraphs/compute/settings.ts";
import type { WorkloadDeps } from "../../subgraphs/compute/workload/create-workload.ts";
import { assetPins } from "../../subgraphs/data/asset/asset-pins.ts";
import { connectionPins } from "../../subgraphs/data/connection/connection-pins.ts";
import { sinkLoads } from "../../subgraphs/data/load/sink-loads.port.ts";
import { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";
import { SecretPins } from "../../subgraphs/data/secret/secret-pins.ts";
import type { WebhookDeps } from "../../subgraphs/data/webhook/webhook.commands.ts";
import { pools } from "../../subgraphs/pools/pool/pool.port.ts";
import { closeWorkloadJob } from "../../workers/compute/close-workload.ts";
import { commitLogJob } from "../../workers/compute/commit-log.ts";
import type { ComputeWorkerDeps } from "../../workers/compute/compute-workers.ts";
import { enforceDeadlineJob } from "../../workers/compute/enforce-deadline.ts";
import { createPlacer, placeStageJob } from "../../workers/compute/place-stage.ts";
import { releaseAttemptJob } from "../../workers/compute/release-attempt.ts";
import { settlePlacementJob } from "../../workers/compute/settle-placement.ts";
import { superviseBootJob } from "../../workers/compute/supervise-boot.ts";
import { deliverWebhookJob } from "../../workers/data/deliver-webhook.ts";
import { type Reconciler, startReconcilers } from "../../workers/reconcile/schedule.ts";
import { startRelay } from "../../workers/relay.ts";
import { foreignNouns } from "../foreign-nouns.ts";
import type { Chance } from "./chance.ts";
import { type Death, deathAt } from "./death.ts";
import type { HappeningCounter } from "./happenings.ts";
import type { QueuedJob, RunEnd } from "./memory-queue.ts";
import type { MemoryStore } from "./memory-store.ts";
import { simulatedReconcilers } from "./simulated-reconcilers.ts";

/** The relay looks more rarely than in a deployment: most looks find nothing and still cost real time. */
const RELAY_PACE = 16;

/** What a simulated process is given by its world. */
export interface ProcessSurroundings {
  /** Behind the gate. */
  db: Database;
  /** For this process alone: forgotten when it dies. */
  clock: Clock;
  settings: ComputeSettings;
  driver: Driver;
  results: MemoryStore;
  /** Where deliveries go. */
  receivers: PostPort;
  publish(jobs: readonly JobToPublish[]): Promise<void>;
  chance: Chance;
  logger: Logger;
  runnerKey: Uint8Array;
  count: HappeningCounter["count"];
  /** Told of what its parts did. */
  note(actor: string, action: string, outcome: string): void;
  /** Told once, when it dies. */
  onDeath(): void;
}

/**
 * One process of the platform: relay, workers, reconcilers and intake, put together as a deployment does, on simulated
 * surroundings. It may die at any step.
 */
export class SimulatedProcess {
  readonly death: Death;
  /** The database as this process sees it. */
  readonly db: Database;
  readonly clock: Clock;
  readonly intake: Intake;
  /** For what tenants ask of it. */
  readonly workloads: WorkloadDeps;
  readonly webhooks: WebhookDeps;
  readonly #around: ProcessSurroundings;
  readonly #sleepers: Sleepers;
  readonly #jobs: ReadonlyMap<string, JobImplementation>;
  readonly #died: Promise<"lost">;
  readonly #never = new AbortController();
  /** A job that was taken may be lost with the process before anything of it was done. */
  readonly #taking: { take(): Promise<void> };
  #fatal: { job: string; steps: number } | null = null;

  constructor(around: ProcessSurroundings) {
    const { settings, logger, chance, runnerKey, clock } = around;
    this.#around = around;
    this.clock = clock;
    let die = () => {};
    this.#died = new Promise((resolve) => {
      die = () => resolve("lost");
    });
    this.death = deathAt(Number.POSITIVE_INFINITY, () => {
      die();
      around.onDeath();
    });
    this.db = this.death.database(around.db);
    this.#taking = this.death.port("queue", { take: async () => {} });
    this.#sleepers = new Sleepers((err) => logger.error({ err }, "a wake-up failed"));
    const wakeups = { on: (topic: string, f: () => void) => this.#sleepers.on(topic, f), healthy: true };
    const box = new SecretBox({ id: "simulated", key: new Uint8Array(32) }, [], chance.bytes);
    const secretPins = new SecretPins(box);
    this.webhooks = { db: this.db, box, exceptions: new PrivateExceptions([]) };
    const market = new OfferMarket();
    const driver = this.death.port("driver", around.driver);
    const deps: ComputeWorkerDeps = {
      ...{ db: this.db, clock, settings, market, runnerKey, logger, wakeups },
      random: chance.number,
      drivers: new Map([[driver.supplier, driver]]),
    };
    const placer = createPlacer(deps);
    const results = this.death.port("objects", around.results);
    const implementations = [
      placeStageJob(deps, placer),
      superviseBootJob(deps),
      releaseAttemptJob(deps),
      settlePlacementJob,
      commitLogJob(results),
      closeWorkloadJob({ assets: assetPins, secrets: secretPins, connections: connectionPins }),
      enforceDeadlineJob,
      deliverWebhookJob({ box, poster: this.death.port("receiver", around.receivers), random: chance.number }),
    ] as unknown as JobImplementation[];
    this.#jobs = new Map(implementations.map((job) => [job.definition.name, job]));
    this.workloads = {
      ...{ db: this.db, settings, market, wakeups, logger, pools },
      ...{
        assets: assetPins,
        secrets: secretPins,
        connections: connectionPins,
        loads: sinkLoads,
        exists: foreignNouns,
        objects: around.results,
        space: ELSEWHERE,
      },
    };
    this.intake = createIntake({
      ...{ db: this.db, clock, settings, logger, wakeups, secrets: secretPins, random: chance.bytes },
    });
    this.#start(deps, simulatedReconcilers(deps, { driver, placer, results, knownJobs: this.jobs }));
  }

  get alive(): boolean {
    return !this.death.happened;
  }

  /** A wake-up reaches this process. */
  wake(topic: string): void {
    if (this.alive) this.#sleepers.wake(topic);
  }

  /** Jobs that it runs, by name. */
  get jobs(): string[] {
    return [...this.#jobs.keys()];
  }

  /** The next run of this job kills it so many steps after its beginning; with null none does. */
  dieIn(fatal: { job: string; steps: number } | null): void {
    this.#fatal = fatal;
  }

  /** Runs a queued job once, as a worker does. */
  async run(job: QueuedJob): Promise<RunEnd> {
    const { logger, note, count } = this.#around;
    if (this.#fatal?.job === job.definition.name) {
      this.death.comesIn(this.#fatal.steps);
      this.#fatal = null;
    }
    const implementation = this.#jobs.get(job.definition.name)!;
    const what = `${job.definition.name} ${JSON.stringify(job.payload)} run ${job.attempt}`;
    const environment = { db: this.db, clock: this.clock, logger, stopping: this.#never.signal };
    const end = await Promise.race([this.#carryOut(job, implementation, environment), this.#died]);
    note("job", what, this.alive ? end : "lost");
    if (this.alive) return end;
    count("died under", job.definition.name);
    return "lost";
  }

  async #carryOut(
    job: QueuedJob,
    implementation: JobImplementation,
    environment: Parameters<typeof runJob>[2],
  ): Promise<RunEnd> {
    try {
      await this.#taking.take();
      await runJob(implementation, { ...job, attempts: job.definition.attempts }, environment);
      return "over";
    } catch (error) {
      return error instanceof RunAgain ? "again" : "elsewhere";
    }
  }

  #start(deps: ComputeWorkerDeps, reconcilers: readonly Reconciler[]): void {
    const { publish, note, count } = this.#around;
    const definitions: JobDefinition<unknown>[] = [...this.#jobs.values()].map((job) => job.definition);
    const port = this.death.port("queue", { publish });
    const { clock } = deps;
    const sleep: Clock["sleep"] = (ms, signal) => clock.sleep(ms * RELAY_PACE, signal);
    const rarely = { now: () => clock.now(), monotonicMs: () => clock.monotonicMs(), sleep };
    startRelay({ ...deps, clock: rarely, queue: port, definitions });
    const watched = reconcilers.map((reconciler) => ({
      ...reconciler,
      run: async (signal: AbortSignal, wokenAt: Date | null) => {
        try {
          await reconciler.run(signal, wokenAt);
        } catch (error) {
          note("reconciler", reconciler.name, (error as Error).name);
          if (!this.alive) count("died under", `reconciler of ${reconciler.name}`);
          throw error;
        }
      },
    }));
    startReconcilers(watched, deps);
  }
}
