import type { ComputeServices } from "../subgraphs/compute/compute-context.ts";
import { OfferMarket } from "../subgraphs/compute/offer/offer-market.ts";
import { assetPins } from "../subgraphs/data/asset/asset-pins.ts";
import { connectionPins } from "../subgraphs/data/connection/connection-pins.ts";
import { sinkLoads } from "../subgraphs/data/load/sink-loads.port.ts";
import { pools } from "../subgraphs/pools/pool/pool.port.ts";
import { computeSettings } from "./compute-settings.ts";
import { foreignNouns } from "./foreign-nouns.ts";
import type { Parts } from "./parts.ts";
import { spaceOf } from "./space.ts";

/** What the commands and resolvers of compute are given. `origin` is where this process is reached, as far as is known. */
export function computeServices(parts: Parts, origin: string): ComputeServices {
  return {
    settings: computeSettings(parts.settings, origin),
    market: new OfferMarket(),
    assets: assetPins,
    secrets: parts.secretPins,
    connections: connectionPins,
    loads: sinkLoads,
    pools,
    exists: foreignNouns,
    wakeups: parts.wakeups,
    objects: parts.objects.results,
    space: spaceOf(parts),
    logger: parts.logger,
  };
}
