import { Database } from "../../../infra/db/database.ts";
import { migrate } from "../../../infra/db/migrate.ts";
import type { SimulatedMarket } from "../../../infra/drivers/simulated/market.ts";
import { SimulatedDriver } from "../../../infra/drivers/simulated/simulated-driver.ts";
import { systemClock } from "../../../infra/kernel/clock.ts";
import { ELSEWHERE } from "../../../infra/objects/storage-space.ts";
import { createLogger } from "../../../infra/telemetry/logger.ts";
import { allEntities } from "../../../roles/entities.ts";
import { OfferMarket } from "../../../subgraphs/compute/offer/offer-market.ts";
import { claimBatch } from "../../../subgraphs/compute/placement/claim.commands.ts";
import { assetPins } from "../../../subgraphs/data/asset/asset-pins.ts";
import { pools } from "../../../subgraphs/pools/pool/pool.port.ts";
import type { ComputeWorkerDeps } from "../../../workers/compute/compute-workers.ts";
import { createLauncher } from "../../../workers/compute/launch-order.ts";
import { createPlacer } from "../../../workers/compute/place-stage.ts";
import { BareDatabase } from "../baseline/bare-database.ts";
import { barePlacer } from "../baseline/bare-placement.ts";
import { benchSettings, machineKinds, makeTenants, offerAll, silentMarket, type Tenant } from "../bench-data.ts";
import type { Bench } from "../bench-place.ts";
import { type BenchRow, comparedRates, type Outcome, type Rate } from "../bench-row.ts";
import { openWorkloads } from "../open-workloads.ts";

const TENANTS = 16;
const PLACED = 640;
/** Callers of the placer at once, as a worker process has them. */
const LANES = 4;
const OFFERS = 1_000;

interface World {
  deps: ComputeWorkerDeps;
  tenants: readonly Tenant[];
  bare: BareDatabase;
  market: SimulatedMarket;
}

/** Placements a second on the simulated driver, whose machines come up and stay silent. */
async function run(bench: Bench): Promise<Outcome[]> {
  const world = await open(bench, await bench.database("placements"));
  const single = await placedBy(world, () => oneByOne(world.deps));
  const batched = await placedBy(world, () => inBatches(world.deps));
  const baseline = await barely(world);
  const note = `${OFFERS} offers, ${TENANTS} tenants; baseline: the same UPDATEs and INSERTs, an order in a transaction, one at a time`;
  const what = (how: string) => `placements, ${how}`;
  return [
    comparedRates({ what: what("one at a time"), nodus: single, baseline, note, leastPerSecond: 300 }),
    comparedRates({ what: what("batched"), nodus: batched, baseline, note, leastPerSecond: 800 }),
  ];
}

async function open(bench: Bench, url: string): Promise<World> {
  const logger = createLogger({ level: "error", role: "bench" });
  await migrate(url);
  const db = await Database.open({ url, entities: allEntities });
  bench.onClose("database of the placements", () => db.close());
  const bare = new BareDatabase(url, 4);
  bench.onClose("bare pool of the placements", () => bare.pool.end());
  const market = silentMarket(machineKinds(OFFERS));
  const driver = new SimulatedDriver({ market, random: Math.random, misbehaviour: { mute: 1 } });
  await offerAll(db, market);
  const deps: ComputeWorkerDeps = {
    ...{ db, clock: systemClock, settings: benchSettings(), market: new OfferMarket(), random: Math.random, logger },
    runnerKey: new Uint8Array(32),
    drivers: new Map([[driver.supplier, driver]]),
    wakeups: { on: () => () => {} },
  };
  return { deps, bare, market, tenants: await makeTenants(db, TENANTS) };
}

/** Submits workloads, then counts how fast they are placed. */
async function placedBy(world: World, place: () => Promise<void>): Promise<Rate> {
  await submit(world, PLACED);
  await place(); // warms up: a worker has placed many before, and so has the baseline
  await submit(world, PLACED);
  await offerAll(world.deps.db, world.market); // a supplier that was last seen before the submits may count as silent
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  await place();
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  const [left] = await world.deps.db.sql<{ n: bigint }>(
    "select count(*) as n from compute.stage where status = 'placing'",
  );
  if (left!.n > 0n) throw new Error(`${left!.n} workloads were not placed`);
  return { perSecond: PLACED / seconds, cpuMicros: (user + system) / PLACED };
}

async function submit({ deps, tenants }: World, count: number): Promise<void> {
  const unused = null as never; // no workload of the bench names a secret or has results
  const services = {
    ...deps,
    assets: assetPins,
    pools,
    secrets: unused,
    connections: unused,
    loads: unused,
    objects: unused,
    space: ELSEWHERE,
    wakeups: unused,
    exists: unused,
  };
  await Promise.all(tenants.map(({ actor }) => openWorkloads(services, actor, count / tenants.length)));
}

/** As a placer whose claims take one stage each: claims follow each other, launches go on beside them. */
async function oneByOne(deps: ComputeWorkerDeps): Promise<void> {
  const launch = createLauncher(deps);
  const { signal } = new AbortController();
  const launches: Promise<void>[] = [];
  for (let afterTenant = ""; ; ) {
    const request = { limit: 1, afterTenant, dueBy: deps.clock.now(), untriedSince: null };
    const { looked, orders, lastTenant } = await claimBatch(deps, request);
    if (looked === 0) break;
    afterTenant = lastTenant;
    for (const order of orders) launches.push(launch(order, signal));
  }
  await Promise.all(launches);
}

async function inBatches(deps: ComputeWorkerDeps): Promise<void> {
  const placer = createPlacer(deps);
  const { signal } = new AbortController();
  const lane = async () => {
    while ((await placer.placeBatch({ signal })).looked > 0);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

async function barely(world: World): Promise<Rate> {
  const { bare } = world;
  const place = await barePlacer(bare);
  const submitted = async () => {
    await submit(world, PLACED);
    return bare.sql<{ id: string }>("select id from compute.stage where status = 'placing'");
  };
  for (const { id } of await submitted()) await place(id); // warms up
  const waiting = await submitted();
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  for (const { id } of waiting) await place(id);
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { perSecond: waiting.length / seconds, cpuMicros: (user + system) / waiting.length };
}

export const placements: BenchRow = { name: "placements", run };
