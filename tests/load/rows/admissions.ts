import { Database } from "../../../infra/db/database.ts";
import { migrate } from "../../../infra/db/migrate.ts";
import { systemClock } from "../../../infra/kernel/clock.ts";
import { openWakeups } from "../../../infra/live/open-wakeups.ts";
import { ELSEWHERE } from "../../../infra/objects/storage-space.ts";
import { createLogger } from "../../../infra/telemetry/logger.ts";
import { allEntities } from "../../../roles/entities.ts";
import { foreignNouns } from "../../../roles/foreign-nouns.ts";
import { takeEvents } from "../../../roles/take-events.ts";
import { OfferMarket } from "../../../subgraphs/compute/offer/offer-market.ts";
import { createWorkload, type WorkloadDeps } from "../../../subgraphs/compute/workload/create-workload.ts";
import { assetPins } from "../../../subgraphs/data/asset/asset-pins.ts";
import { pools } from "../../../subgraphs/pools/pool/pool.port.ts";
import { admitBarely } from "../baseline/bare-admission.ts";
import { BareDatabase } from "../baseline/bare-database.ts";
import {
  benchSettings,
  machineKinds,
  makeTenants,
  offerAll,
  silentMarket,
  smallRequest,
  type Tenant,
} from "../bench-data.ts";
import type { Bench } from "../bench-place.ts";
import { type BenchRow, comparedRates, type Outcome } from "../bench-row.ts";
import type { FaceFacts } from "../face-process.ts";
import { httpRates } from "../http-load.ts";
import { rateOf } from "../measure.ts";
import { freshKey } from "../open-workloads.ts";

const TENANTS = 100;
const LANES = 16;
const LEAST = 1_500;

/** Durable admissions: everything a workload needs to start is on disk when the answer goes out. */
async function run(bench: Bench): Promise<Outcome[]> {
  const { deps, tenants, bare } = await open(bench, await bench.database("admissions"));
  const admit = async (what: string, among: readonly Tenant[]) => {
    let turn = 0;
    const next = () => among[turn++ % among.length]!.actor;
    const nodus = await rateOf(
      () => createWorkload(deps, next(), { ...smallRequest(), idempotencyKey: freshKey() }, systemClock.now()),
      { lanes: LANES },
    );
    const barely = () => admitBarely(bare, next().tenantId, freshKey(), smallRequest());
    const baseline = await rateOf(barely, { lanes: LANES });
    const note = `${LANES} at a time, in process; baseline: the same inserts by named statements in one transaction`;
    return comparedRates({ what, nodus, baseline, note, leastPerSecond: LEAST });
  };
  return [
    await admit(`admissions, ${TENANTS} tenants`, tenants),
    await admit("admissions, one tenant", tenants.slice(0, 1)),
    await overRest(bench),
  ];
}

async function open(bench: Bench, url: string) {
  const logger = createLogger({ level: "error", role: "bench" });
  await migrate(url);
  const db = await Database.open({ url, entities: allEntities });
  bench.onClose("database of the admissions", () => db.close());
  const wakeups = await openWakeups({ databaseUrl: url, logger });
  bench.onClose("wake-ups of the admissions", () => wakeups.close());
  db.announceTo((topic) => wakeups.announce(topic));
  db.offerTo(takeEvents);
  const bare = new BareDatabase(url);
  bench.onClose("bare pool of the admissions", () => bare.pool.end());
  await offerAll(db, silentMarket(machineKinds(16)));
  const unused = null as never; // no workload of the bench names a secret or has results
  const deps: WorkloadDeps = {
    ...{
      db,
      settings: benchSettings(),
      market: new OfferMarket(),
      assets: assetPins,
      pools,
      exists: foreignNouns,
      wakeups,
      space: ELSEWHERE,
      logger,
    },
    ...{ secrets: unused, connections: unused, loads: unused, objects: unused },
  };
  return { deps, bare, tenants: await makeTenants(db, TENANTS) };
}

async function overRest(bench: Bench): Promise<Outcome> {
  const face = await bench.helper<FaceFacts>("face-process", "face");
  const bare = await bench.helper("baseline-process", "face");
  const requests = face.facts.tenants.map(({ key }) => ({
    ...{ method: "POST" as const, path: "/v1/workloads", body: JSON.stringify(smallRequest().payload) },
    setupRequest: (request: object) => ({
      ...request,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "idempotency-key": freshKey() },
    }),
  }));
  const rates = await httpRates({ served: face, load: { requests } }, { served: bare, load: { requests } });
  const note = "POST /v1/workloads of 16 tenants; baseline: a hand-written Fastify route with the same inserts";
  return comparedRates({ what: "admissions over REST", ...rates, note, leastPerSecond: LEAST });
}

export const admissions: BenchRow = { name: "admissions", run };
