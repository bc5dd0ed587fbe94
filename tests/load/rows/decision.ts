import { Database } from "../../../infra/db/database.ts";
import { migrate } from "../../../infra/db/migrate.ts";
import { systemClock } from "../../../infra/kernel/clock.ts";
import { allEntities } from "../../../roles/entities.ts";
import { matchOffers } from "../../../subgraphs/compute/offer/match-offers.ts";
import type { Offer } from "../../../subgraphs/compute/offer/offer.entity.ts";
import { OfferMarket } from "../../../subgraphs/compute/offer/offer-market.ts";
import { needDefaults } from "../../../subgraphs/compute/placement/placement-deps.ts";
import type { StageSpec } from "../../../subgraphs/compute/stage/stage.entity.ts";
import { judge } from "../../../subgraphs/compute/workload/judge.ts";
import { benchSettings, machineKinds, offerAll, silentMarket, smallRequest } from "../bench-data.ts";
import type { Bench } from "../bench-place.ts";
import { type BenchRow, comparedLatencies, type Outcome } from "../bench-row.ts";
import { timesOf } from "../measure.ts";

/** How long it takes to choose among all offers, rejected ones counted by their reasons. */
async function run(bench: Bench): Promise<Outcome[]> {
  return [await decide(bench, 1_000, 2), await decide(bench, 10_000, 10)];
}

async function decide(bench: Bench, count: number, mostMs: number): Promise<Outcome> {
  const url = await bench.database(`decision_${count}`);
  await migrate(url);
  const db = await Database.open({ url, entities: allEntities });
  bench.onClose(`database of ${count} offers`, () => db.close());
  await offerAll(db, silentMarket(machineKinds(count)));
  const settings = benchSettings();
  const spec = specOf();
  const market = new OfferMarket();
  const now = systemClock.now();
  const context = {
    ...{ now, tenantId: "team_bench", cpuFallback: true, defaults: needDefaults(settings) },
    budget: { micros: 1_000_000n, windowMs: settings.firstWindowMs, feeBasisPoints: settings.feeBasisPoints },
  };
  const choose = async () => {
    const { ranked } = matchOffers(spec, (await market.view(db, now)).offers, context);
    if (ranked.length === 0) throw new Error("no offer fits");
  };
  const nodusMs = await timesOf(choose, 100, 30);
  const { offers } = await market.view(db, now);
  const baselineMs = await timesOf(() => barely(offers), 100, 30);
  const note =
    "looking for news of the market, filtering and ranking; baseline: one pass over the offers for the cheapest H100";
  const what = `placement decision, ${count} offers`;
  return comparedLatencies({ what, nodusMs, baselineMs, most: { p50Ms: mostMs, p95Ms: null }, note });
}

function barely(offers: readonly Offer[]): Offer {
  const fits = offers.filter((o) => o.accelerator === "H100" && o.gpuCount === 1);
  return fits.reduce((best, offer) => (offer.rateMicrosPerHour < best.rateMicrosPerHour ? offer : best));
}

function specOf(): StageSpec {
  const { stages } = judge({ settings: benchSettings() }, smallRequest(), systemClock.now());
  return { ...stages[0]!.spec, sourceAsset: null, inputs: [], secretEnv: {} };
}

export const decision: BenchRow = { name: "decision", run };
