import { randomBytes } from "node:crypto";
import type { Database } from "../../infra/db/database.ts";
import { OUTBOX_TIMES } from "../../infra/db/outbox-times.ts";
import type { Driver } from "../../infra/drivers/driver.ts";
import { type MachineKind, SimulatedMarket } from "../../infra/drivers/simulated/market.ts";
import { echo, type Scripts } from "../../infra/drivers/simulated/script.ts";
import { seededRandom } from "../../infra/drivers/simulated/seeded-random.ts";
import { type Misbehaviour, SimulatedDriver } from "../../infra/drivers/simulated/simulated-driver.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { Sleepers } from "../../infra/live/wakeups.ts";
import type { JobImplementation } from "../../infra/queue/implement-job.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { createIntake, type Intake } from "../../intake/session-hub.ts";
import { computeTimes } from "../../subgraphs/compute/awaited-times.ts";
import { OfferMarket } from "../../subgraphs/compute/offer/offer-market.ts";
import { syncOffers } from "../../subgraphs/compute/offer/sync-offers.commands.ts";
import type { ComputeSettings } from "../../subgraphs/compute/settings.ts";
import { Workload } from "../../subgraphs/compute/workload/workload.entity.ts";
import { WorkloadEvent } from "../../subgraphs/compute/workload/workload-event.entity.ts";
import type { ComputeWorkerDeps } from "../../workers/compute/compute-workers.ts";
import { createLauncher } from "../../workers/compute/launch-order.ts";
import { createPlacer, type Placer, placeStageJob } from "../../workers/compute/place-stage.ts";
import { releaseAttemptJob } from "../../workers/compute/release-attempt.ts";
import { settlePlacementJob } from "../../workers/compute/settle-placement.ts";
import { superviseBootJob } from "../../workers/compute/supervise-boot.ts";
import { attemptsReconciler } from "../../workers/reconcile/attempts.ts";
import { offersReconciler } from "../../workers/reconcile/offers.ts";
import { orphansReconciler } from "../../workers/reconcile/orphans.ts";
import type { Reconciler } from "../../workers/reconcile/schedule.ts";
import { setBackClock } from "../../workers/reconcile/set-back-clock.ts";
import { waitingStagesReconciler } from "../../workers/reconcile/waiting-stages.ts";
import { computeSettings, insertAccount, insertWorkload, RUNNER_KEY } from "./compute-fixtures.ts";
import type { TestDatabase } from "./database.ts";
import { jobContext } from "./jobs.ts";
import { lifecycleDatabase } from "./lifecycle-world.ts";
import { CPU_KIND } from "./market-kinds.ts";

export interface MarketWorldOptions {
  kinds?: readonly MachineKind[];
  scripts?: Scripts;
  misbehaviour?: Partial<Misbehaviour>;
  settings?: Partial<ComputeSettings>;
  seed?: number;
}

/** A platform's placement half on a real database, with the simulated market as its supplier. */
export interface MarketWorld {
  database: TestDatabase;
  db: Database;
  clock: FakeClock;
  market: SimulatedMarket;
  driver: SimulatedDriver;
  intake: Intake;
  deps: ComputeWorkerDeps;
  placer: Placer;
  reconcilers: Reconciler[];
  ports: { driver: Driver };
  /** An accepted workload of the team that nobody has looked at yet. */
  submit(over?: Parameters<typeof insertWorkload>[2]): ReturnType<typeof insertWorkload>;
  /** One batch of the placer: how many stages it looked at, and how many of them it placed. */
  place(): ReturnType<Placer["placeBatch"]>;
  close(): Promise<void>;
}

/** Of a process that is not about to stop. */
export const staying = new AbortController().signal;

const logger = createLogger({ level: "silent", role: "test" });

export async function marketWorld(options: MarketWorldOptions = {}): Promise<MarketWorld> {
  const database = await lifecycleDatabase();
  const { db } = database;
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  const settings = { ...computeSettings, ...options.settings };
  const seed = options.seed ?? 1;
  const sleepers = new Sleepers((error) => logger.error({ err: error }, "a wake-up failed"));
  db.announceTo((topic) => sleepers.wake(topic));
  const wakeups = { on: (topic: string, f: () => void) => sleepers.on(topic, f) };
  const intake = createIntake({
    ...{ db, clock, settings, logger, wakeups },
    secrets: { reveal: async () => [] },
    random: (size) => randomBytes(size),
  });
  const market = new SimulatedMarket({
    ...{ clock, seed },
    kinds: options.kinds ?? [CPU_KIND],
    connect: (send, close) => intake.connect(send, close),
    scripts: options.scripts ?? echo,
  });
  const driver = new SimulatedDriver({ market, random: seededRandom(seed), misbehaviour: options.misbehaviour });
  const deps = workerDeps({ db, clock, settings, wakeups }, driver);
  await insertAccount(db, clock.now());
  await syncOffers(db, driver.supplier, market.offers(), clock.now());
  const placer = createPlacer(deps);
  return {
    ...{ database, db, clock, market, driver, intake, deps, placer },
    reconcilers: [
      offersReconciler(deps, driver),
      attemptsReconciler(deps, createLauncher(deps)),
      waitingStagesReconciler(deps, placer),
      orphansReconciler(deps, driver),
      setBackClock({ ...deps, times: [...OUTBOX_TIMES, ...computeTimes(settings)] }),
    ],
    ports: { driver },
    submit: (over) => insertWorkload(db, clock.now(), over),
    place: () => placer.placeBatch({ signal: staying }),
    close: async () => {
      for (const { id } of market.live) market.end(id);
      await database.close();
    },
  };
}

/** Deps of a further process on the same database. */
export function workerDeps(
  base: Pick<ComputeWorkerDeps, "db" | "clock" | "settings" | "wakeups">,
  driver: Driver,
): ComputeWorkerDeps {
  return {
    ...base,
    logger,
    market: new OfferMarket(),
    runnerKey: RUNNER_KEY,
    random: () => 0.5,
    drivers: new Map([[driver.supplier, driver]]),
  };
}

/** Runs what the outbox holds and what follows from it, as relay and workers would, until nothing more is due. */
export async function runDueJobs(world: MarketWorld): Promise<void> {
  const jobs = new Map(allJobs(world).map((job) => [job.definition.name, job]));
  for (;;) {
    const rows = await world.db.sql<{ job: string; payload: unknown }>(
      "delete from infra.outbox where due_at <= $1 and job = any($2) returning job, payload",
      [world.clock.now(), [...jobs.keys()]],
    );
    if (rows.length === 0) return;
    for (const { job, payload } of rows) await runJob(world, jobs.get(job)!, payload);
  }
}

async function runJob(world: MarketWorld, job: JobImplementation, payload: unknown): Promise<void> {
  const outcome = await job.body(payload, jobContext(world));
  if (outcome.outcome === "done") return;
  const at = outcome.outcome === "later" ? outcome.at : new Date(world.clock.now().getTime() + 1_000);
  await world.db.sql(
    "insert into infra.outbox (id, job, payload, due_at, created_at) values (gen_random_uuid()::text, $1, $2, $3, $4)",
    [job.definition.name, JSON.stringify(payload), at, world.clock.now()],
  );
}

function allJobs({ deps, placer }: MarketWorld): JobImplementation[] {
  return [
    placeStageJob(deps, placer),
    superviseBootJob(deps),
    releaseAttemptJob(deps),
    settlePlacementJob,
  ] as JobImplementation[];
}

/** One round of every reconciler, and what follows from it. */
export async function reconcileOnce(world: MarketWorld): Promise<void> {
  for (const reconciler of world.reconcilers) await reconciler.run(staying, null);
  await runDueJobs(world);
}

/** Lets time pass, with everything that a deployment does meanwhile, until `done` or for a simulated hour at most. */
export async function until(world: MarketWorld, done: () => Promise<boolean> | boolean, stepMs = 500): Promise<void> {
  for (let passedMs = 0; passedMs < 3_600_000; passedMs += stepMs) {
    if (await done()) return;
    await world.clock.advance(stepMs);
    await reconcileOnce(world);
    await new Promise((resolve) => setTimeout(resolve, 3)); // the database answers in real time
  }
  throw new Error("an hour passed and it did not happen");
}

/** Reserved capacity of every kind together, orders that cost money at the supplier, and money held: what may leak. */
export async function inUse({ db, market }: MarketWorld): Promise<Record<string, number>> {
  const [row] = await db.sql<{ cpu: number; memory: number; gpus: number; slots: number; held: number; own: number }>(
    `select sum(cpu_millis_used)::int as cpu, sum(memory_mb_used)::int as memory, sum(gpus_used)::int as gpus, sum(slots_used)::int as slots,
       (select sum(held_micros)::int from compute.account) as held, (select coalesce(sum(held_micros), 0)::int from compute.workload) as own
     from compute.capacity`,
  );
  return { ...row!, orders: market.live.length };
}

export const NOTHING_IN_USE = { cpu: 0, memory: 0, gpus: 0, slots: 0, held: 0, own: 0, orders: 0 };

export function eventsOf({ db }: MarketWorld, workloadId: string): Promise<WorkloadEvent[]> {
  return db.rows(WorkloadEvent, "where t.workload_id = $1 order by t.seq", [workloadId]);
}

/** Payload of the first event of a type; empty when there is none. */
export async function eventOf(world: MarketWorld, workloadId: string, type: string): Promise<Record<string, unknown>> {
  return (await eventsOf(world, workloadId)).find((e) => e.type === type)?.payload ?? {};
}

export async function workloadOf({ db }: MarketWorld, id: string): Promise<Workload> {
  return (await db.row(Workload, "where t.id = $1", [id]))!;
}

/** For `until`: the workload's last charge is posted. */
export function settled(world: MarketWorld, id: string): () => Promise<boolean> {
  return async () => (await workloadOf(world, id)).settledAt !== null;
}

/** The driver with some of its calls replaced. */
export function withCalls(driver: Driver, calls: Partial<Driver>): Driver {
  return {
    supplier: driver.supplier,
    offers: (signal) => driver.offers(signal),
    launch: (order, signal) => driver.launch(order, signal),
    observe: (orderId, signal) => driver.observe(orderId, signal),
    terminate: (orderId, signal) => driver.terminate(orderId, signal),
    list: (signal) => driver.list(signal),
    close: () => driver.close(),
    ...calls,
  };
}
