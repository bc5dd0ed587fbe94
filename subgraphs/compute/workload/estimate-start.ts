import type { Queryer } from "../../../infra/db/database.ts";
import type { Micros } from "../../../infra/kernel/micros.ts";
import type { ComputeServices } from "../compute-context.ts";
import { microsFor } from "../ledger/price.ts";
import { cheapestMatchingOffer, type OfferMarket } from "../offer/offer-market.ts";
import type { StageSpec } from "../stage/stage.entity.ts";

export interface Start {
  tenantId: string;
  spec: StageSpec;
  now: Date;
}

/** What has to be held for the first window on the cheapest capacity that fits; zero when none does, and the workload will wait. */
export async function estimateStart(
  q: Queryer,
  { market, settings }: Pick<ComputeServices, "settings"> & { market: Pick<OfferMarket, "view"> },
  { tenantId, spec, now }: Start,
): Promise<Micros> {
  const { cheapest } = await cheapestMatchingOffer(market, q, spec, {
    now,
    tenantId,
    cpuFallback: settings.cpuFallback,
    defaults: { cpuMillis: settings.defaultCpuMillis, memoryMb: settings.defaultMemoryMb },
  });
  if (!cheapest) return 0n;
  const price = { rateMicrosPerHour: cheapest.offer.rateMicrosPerHour, feeBasisPoints: settings.feeBasisPoints };
  return microsFor(price, settings.firstWindowMs);
}
