import { Database } from "../../../infra/db/database.ts";
import { migrate } from "../../../infra/db/migrate.ts";
import { OUTBOX_TOPIC } from "../../../infra/db/outbox.ts";
import { systemClock } from "../../../infra/kernel/clock.ts";
import { openWakeups } from "../../../infra/live/open-wakeups.ts";
import type { Wakeups } from "../../../infra/live/wakeups.ts";
import { ELSEWHERE } from "../../../infra/objects/storage-space.ts";
import { createLogger } from "../../../infra/telemetry/logger.ts";
import { allEntities } from "../../../roles/entities.ts";
import { foreignNouns } from "../../../roles/foreign-nouns.ts";
import { takeEvents } from "../../../roles/take-events.ts";
import { OfferMarket } from "../../../subgraphs/compute/offer/offer-market.ts";
import { createWorkload, type WorkloadDeps } from "../../../subgraphs/compute/workload/create-workload.ts";
import { assetPins } from "../../../subgraphs/data/asset/asset-pins.ts";
import { pools } from "../../../subgraphs/pools/pool/pool.port.ts";
import { redisMissing, testRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import {
  benchSettings,
  machineKinds,
  makeTenants,
  offerAll,
  silentMarket,
  smallRequest,
  type Tenant,
  WORKER_OFFERS,
} from "../bench-data.ts";
import type { Bench, Served } from "../bench-place.ts";
import { type BenchRow, comparedRates, type Outcome, type Rate } from "../bench-row.ts";
import { cpuMicrosOf, rateOf } from "../measure.ts";
import { freshKey } from "../open-workloads.ts";

const WORKERS = [1, 2, 4];
const TENANTS = 16;
const LANES = 16;
const BACKLOG = 1_000;
/** Later than the bench ends: a backlog falls due when it is released. */
const NOT_YET_MS = 24 * 3600_000;

/** Whose jobs wait in Redis, or in PostgreSQL; a database for each. */
interface Side {
  name: string;
  redisUrl: string | null;
  deps: WorkloadDeps;
  wakeups: Wakeups;
  tenants: readonly Tenant[];
  workers: Served[];
}

/** Work that goes through the queue, with one to four worker processes; Redis stands beside PostgreSQL. */
async function run(bench: Bench): Promise<Outcome[]> {
  const missing = redisMissing();
  const redis = missing ? null : await redisSide(bench);
  const postgres = await open(bench, "queue_postgres", null);
  const outcomes: Outcome[] = [];
  for (const count of WORKERS) {
    const theirs = await measure(bench, postgres, count);
    const ours = redis && (await measure(bench, redis, count));
    const by = `, ${count} ${count === 1 ? "worker" : "workers"}`;
    outcomes.push(
      beside(`placements${by}`, ours?.placements ?? null, theirs.placements, missing),
      beside(`admissions beside them${by}`, ours?.admissions ?? null, theirs.admissions, missing),
    );
  }
  return outcomes;
}

function beside(what: string, redis: Rate | null, postgres: Rate, missing: string | null): Outcome {
  const note = what.startsWith("placements")
    ? `${BACKLOG} workloads that fall due at once; the processor time is all workers'; queue in Redis, baseline: queue in PostgreSQL`
    : `${LANES} at a time by this process while the workers place them; queue in Redis, baseline: queue in PostgreSQL`;
  if (redis) return comparedRates({ what, nodus: redis, baseline: postgres, note });
  const alone = comparedRates({ what, nodus: postgres, baseline: postgres, note: `${note}; ${missing}` });
  return { ...alone, nodus: "-", ratio: "-" };
}

async function redisSide(bench: Bench): Promise<Side> {
  const redis = await testRedis();
  bench.onClose("Redis", () => redis.close());
  return open(bench, "queue_redis", redis.url);
}

async function open(bench: Bench, name: string, redisUrl: string | null): Promise<Side> {
  const logger = createLogger({ level: "error", role: "bench" });
  const url = await bench.database(name);
  await migrate(url);
  const db = await Database.open({ url, entities: allEntities });
  bench.onClose(`database of ${name}`, () => db.close());
  const wakeups = await openWakeups({ databaseUrl: url, redisUrl: redisUrl ?? undefined, logger });
  bench.onClose(`wake-ups of ${name}`, () => wakeups.close());
  db.announceTo((topic) => wakeups.announce(topic));
  db.offerTo(takeEvents);
  await offerAll(db, silentMarket(machineKinds(WORKER_OFFERS)));
  const unused = null as never; // no workload of the bench names a secret or has results
  const deps: WorkloadDeps = {
    ...{ db, settings: benchSettings(), market: new OfferMarket(), assets: assetPins, pools, exists: foreignNouns },
    ...{ wakeups, space: ELSEWHERE, logger, secrets: unused, connections: unused, loads: unused, objects: unused },
  };
  return { name, redisUrl, deps, wakeups, tenants: await makeTenants(db, TENANTS), workers: [] };
}

async function measure(bench: Bench, side: Side, workers: number): Promise<{ placements: Rate; admissions: Rate }> {
  while (side.workers.length < workers) side.workers.push(await startWorker(bench, side));
  return { placements: await placements(side), admissions: await admissions(side) };
}

function startWorker(bench: Bench, { name, redisUrl, workers }: Side): Promise<Served> {
  const environment: Record<string, string> = redisUrl ? { REDIS_URL: redisUrl } : {};
  return bench.helper("worker-process", name, { label: `${workers.length + 1}`, environment });
}

async function placements(side: Side): Promise<Rate> {
  const { deps, wakeups, tenants } = side;
  const dueAt = new Date(Date.now() + NOT_YET_MS);
  const share = BACKLOG / TENANTS;
  await Promise.all(
    tenants.map(async (_, turn) => {
      for (let i = Math.floor(turn * share); i < Math.floor((turn + 1) * share); i++) await admit(side, turn, dueAt);
    }),
  );
  const cpuBefore = cpuOf(side);
  const startedAt = performance.now();
  await deps.db.sql("update compute.stage set next_try_at = $1 where next_try_at = $2", [new Date(), dueAt]);
  await deps.db.sql("update infra.outbox set due_at = $1 where due_at = $2", [new Date(), dueAt]);
  wakeups.announce(OUTBOX_TOPIC);
  await allPlaced(side);
  const seconds = (performance.now() - startedAt) / 1000;
  return { perSecond: BACKLOG / seconds, cpuMicros: (cpuOf(side) - cpuBefore) / BACKLOG };
}

async function admissions(side: Side): Promise<Rate> {
  let turn = 0;
  const rate = await rateOf(() => admit(side, turn++, systemClock.now()), { lanes: LANES, warmUpMs: 1_000 });
  await allPlaced(side);
  return rate;
}

function admit({ deps, tenants }: Side, turn: number, dueAt: Date): Promise<unknown> {
  const { actor } = tenants[turn % TENANTS]!;
  return createWorkload(deps, actor, { ...smallRequest(), idempotencyKey: freshKey() }, dueAt);
}

function cpuOf({ workers }: Side): number {
  return workers.reduce((sum, { pid }) => sum + cpuMicrosOf(pid), 0);
}

const UNPLACED = `select exists (select 1 from compute.stage where status = 'placing')
  or exists (select 1 from compute.attempt where state = 'launching') as some`;

/** Every stage has an order that its supplier took. */
async function allPlaced({ name, deps }: Side): Promise<void> {
  const none = async () => !(await deps.db.sql<{ some: boolean }>(UNPLACED))[0]!.some;
  await until(`all work of ${name} is placed`, none, { timeoutMs: 120_000, everyMs: 20 });
}

export const queues: BenchRow = { name: "queues", run };
