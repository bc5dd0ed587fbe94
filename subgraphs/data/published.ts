import type { Queryer, Tx } from "../../infra/db/database.ts";
import type { OfferedEvent } from "../../infra/db/offered-event.ts";

/** An asset as a runner needs it. */
export interface PinnedAsset {
  id: string;
  name: string;
  /** SHA-256 of the stored bytes, in hex: their address in the object store of assets. */
  sha256: string;
  bytes: number;
  /** `tar`: unpack it; its paths and types are checked. `file`: put it down under the asset's name. */
  format: "tar" | "file";
}

/** JSON pointers of references: one for all of them (`/inputs` gives `/inputs/0`, …), or one for each index. */
export type ReferenceField = string | ((index: number) => string);

/** Assets for whoever runs work. References are refused as `asset_not_found` (400) or `asset_not_ready` (409). */
export interface AssetPort {
  /** Refuses unless every asset is there and ready. A single id is refused at `field` itself. */
  check(q: Queryer, ask: { tenantId: string; assetIds: readonly string[]; field: ReferenceField }): Promise<void>;
  /**
   * Keeps assets from deletion until `release`. Once a holder has an asset, pinning it again changes nothing. Answers in
   * the order of `assetIds`.
   */
  pin(
    tx: Tx,
    ask: { tenantId: string; assetIds: readonly string[]; holderId: string; now: Date; field?: ReferenceField },
  ): Promise<PinnedAsset[]>;
  /** Lets go of all assets of a holder. */
  release(tx: Tx, holderId: string, now: Date): Promise<void>;
}

/** A version of a secret that a holder keeps. */
export interface PinnedSecret {
  name: string;
  secretId: string;
  version: number;
}

/** Secrets for whoever runs work. References are refused as `secret_not_found` (400). */
export interface SecretPort {
  /** Refuses unless every name is in use; the field is `field/index`. */
  check(q: Queryer, ask: { tenantId: string; names: readonly string[]; field: string }): Promise<void>;
  /**
   * Keeps the newest version of every name for the holder until `release`. A name that the holder has already keeps its
   * version, whatever was written or retired since. Answers in the order of `names`.
   */
  pin(
    tx: Tx,
    ask: { tenantId: string; names: readonly string[]; holderId: string; now: Date; field?: string },
  ): Promise<PinnedSecret[]>;
  /** The values that a holder keeps, by name. For the hand-over to a run only: never to be logged, stored or answered. */
  reveal(q: Queryer, ask: { tenantId: string; holderId: string }): Promise<{ name: string; value: string }[]>;
  /** Lets go of all secrets of a holder. */
  release(tx: Tx, holderId: string, now: Date): Promise<void>;
}

/** Signs what is sent to a team's webhook. */
export interface WebhookSigner {
  /** Lower-case hex HMAC-SHA256 over `timestamp.body`, keyed by the secret's bytes. */
  sign(body: Uint8Array, secret: string, timestampSeconds: number): string;
}

/** The teams' webhooks, for the composition root to bind to `Database.offerTo`: other domains reach it as `tx.offer`. */
export interface WebhookPort {
  /**
   * Records, in the caller's transaction, that an event is to be sent. One statement; nothing for types that are not sent
   * and for teams without a webhook that is on.
   */
  offer(tx: Tx, event: OfferedEvent): Promise<void>;
}
