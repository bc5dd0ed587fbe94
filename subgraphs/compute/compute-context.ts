import type { Logger } from "pino";
import type { Exists } from "../../infra/db/exists.ts";
import type { GraphContext } from "../../infra/graphql/context.ts";
import type { Wakeups } from "../../infra/live/wakeups.ts";
import type { CanLink, ObjectStore } from "../../infra/objects/object-store.ts";
import type { StorageSpace } from "../../infra/objects/storage-space.ts";
import type { AssetPort, ConnectionPort, LoadPort, SecretPort } from "../data/published.ts";
import type { PoolPort } from "../pools/published.ts";
import type { ForeignNoun } from "./foreign-nouns.ts";
import type { OfferMarket } from "./offer/offer-market.ts";
import type { ComputeSettings } from "./settings.ts";

/** What the commands and resolvers of compute need beyond the common context. */
export interface ComputeServices {
  readonly settings: ComputeSettings;
  readonly market: OfferMarket;
  readonly assets: AssetPort;
  readonly secrets: SecretPort;
  readonly connections: ConnectionPort;
  readonly loads: LoadPort;
  readonly pools: PoolPort;
  /** Whether the tenant has an object of another domain. */
  readonly exists: Record<ForeignNoun, Exists>;
  readonly wakeups: Pick<Wakeups, "on" | "healthy">;
  /** Where committed logs and outputs lie. */
  readonly objects: Pick<ObjectStore, "open"> & Partial<CanLink>;
  /** Whether there is room for the logs and outputs of new work. */
  readonly space: StorageSpace;
  readonly logger: Pick<Logger, "error">;
}

/** The composition root adds the services to every request's context. */
export interface ComputeContext extends GraphContext {
  readonly compute: ComputeServices;
}
