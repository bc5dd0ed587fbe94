import type { Tx } from "../../../infra/db/database.ts";
import { appendAccountEvent } from "../account-event/append-account-event.ts";
import { dataTopics } from "../topics.ts";
import type { Asset } from "./asset.entity.ts";

/** What an asset's state says of it in the account stream. */
const EVENT_OF_STATE = {
  importing: "asset.importing",
  ready: "asset.ready",
  failed: "asset.failed",
  deleting: null,
  deleted: "asset.deleted",
} as const;

/**
 * Tells those who follow the asset, and the account stream where the state says so, that it is in a state now. Part of
 * the transaction that writes the state; takes the stream's lock, so it comes last.
 */
export async function announceState(tx: Tx, asset: Asset, now: Date): Promise<void> {
  tx.wake(dataTopics.asset(asset.id));
  const type = EVENT_OF_STATE[asset.state];
  if (!type) return;
  const payload = {
    asset_id: asset.id,
    kind: asset.kind,
    name: asset.name,
    stored_bytes: asset.storedBytes,
    ...(asset.sha256 ? { sha256: asset.sha256 } : {}),
    ...(asset.error ? { error: asset.error } : {}),
  };
  await appendAccountEvent(tx, { tenantId: asset.tenantId, type, payload, now });
}
