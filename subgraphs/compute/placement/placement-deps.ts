import type { Database } from "../../../infra/db/database.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import type { OfferMarket } from "../offer/offer-market.ts";
import type { NeedDefaults } from "../offer/resource-need.ts";
import type { ComputeSettings } from "../settings.ts";

/** What the commands of placement use. */
export interface PlacementDeps {
  db: Database;
  clock: Clock;
  settings: ComputeSettings;
  /** One for each process. */
  market: OfferMarket;
  /** Key that order tokens are derived from. */
  runnerKey: Uint8Array;
  /** A number in [0, 1), for back-off. */
  random: () => number;
}

/** What a stage is given when it does not say. */
export function needDefaults(settings: ComputeSettings): NeedDefaults {
  return { cpuMillis: settings.defaultCpuMillis, memoryMb: settings.defaultMemoryMb };
}
