import type { Database } from "../../../infra/db/database.ts";
import { eachStep } from "../../../infra/db/each-step.ts";
import { teamsInTurn } from "../../../infra/db/teams-in-turn.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import type { ObjectStore } from "../../../infra/objects/object-store.ts";
import { Asset } from "./asset.entity.ts";
import { assetMachine } from "./asset.machine.ts";
import { ASSET } from "./asset.refusals.ts";
import { announceState } from "./asset-events.ts";
import { removeIfUnused } from "./asset-object.ts";

export interface DeletionDeps {
  db: Database;
  /** The store of assets alone. */
  objects: ObjectStore;
  clock: Clock;
}

/**
 * Deletes an asset and, when no other asset has the same content, its bytes. It stays readable as deleted for 30 days.
 * `not_found` for an unknown or deleted one, `asset_in_use` while it is imported or live work holds it. When the store
 * (`object_store_unavailable`) or the last step (`asset_delete_failed`) fails, the asset is `deleting`: nobody can use it,
 * and deleting it again goes on from there, as a sweep does.
 */
export async function deleteAsset(deps: DeletionDeps, actor: Actor, id: string): Promise<Asset> {
  const asset = await beginDeletion(deps.db, actor.tenantId, id);
  try {
    return await finishDeletion(deps, asset);
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw Object.assign(new Refused(ASSET.asset_delete_failed), { cause: error });
  }
}

/** Takes the asset out of use. */
function beginDeletion(db: Database, tenantId: string, id: string): Promise<Asset> {
  return db.command(async (tx) => {
    if (!isId("asset", id)) throw new Refused(COMMON.not_found);
    // The lock makes a run that takes the asset just now wait for us, or us for it.
    const asset = await tx.row(Asset, "where t.tenant_id = $1 and t.id = $2 for update", [tenantId, id]);
    if (!asset || asset.state === "deleted") throw new Refused(COMMON.not_found);
    const next = assetMachine.decide(asset.state, "delete");
    if (next === "refuse") throw new Refused(ASSET.asset_in_use, { message: "The asset is still being imported." });
    if (next === "ignore") return asset;
    const [holder] = await tx.sql<{ holder_id: string }>(
      "select holder_id from data.asset_pin where tenant_id = $1 and asset_id = $2 order by created_at limit 1",
      [tenantId, id],
    );
    if (holder)
      throw new Refused(ASSET.asset_in_use, {
        message: `The asset is used by ${holder.holder_id}.`,
        extra: { holder_id: holder.holder_id },
      });
    await tx.sql("update data.asset set state = $3, change_seq = change_seq + 1 where tenant_id = $1 and id = $2", [
      tenantId,
      id,
      next,
    ]);
    return Object.assign(asset, { state: next, changeSeq: asset.changeSeq + 1 });
  });
}

async function finishDeletion(deps: DeletionDeps, asset: Asset): Promise<Asset> {
  if (asset.sha256) await removeIfUnused(deps, asset.sha256);
  return endDeletion(deps.db, asset, deps.clock.now());
}

function endDeletion(db: Database, asset: Asset, now: Date): Promise<Asset> {
  return db.command(async (tx) => {
    const [ended] = await tx.sql<{ change_seq: number }>(
      `update data.asset set state = 'deleted', deleted_at = $3, stored_bytes = 0, change_seq = change_seq + 1
        where tenant_id = $1 and id = $2 and state = 'deleting' returning change_seq`,
      [asset.tenantId, asset.id, now],
    );
    const deleted = { state: "deleted" as const, deletedAt: now, storedBytes: 0 };
    if (!ended) return Object.assign(asset, deleted); // another call, or the sweep, was as quick
    Object.assign(asset, deleted, { changeSeq: ended.change_seq });
    await announceState(tx, asset, now);
    return asset;
  });
}

/** Finishes deletions that a failure or a crash left in the middle, at most `limit`. One that fails again does not keep others. */
export async function finishDeletions(deps: DeletionDeps, limit = 100): Promise<void> {
  const order = teamsInTurn("t.tenant_id", "t.id");
  const left = await deps.db.rows(Asset, `where t.state = 'deleting' order by ${order} limit $1`, [limit]);
  const finish = (asset: Asset) => () => finishDeletion({ ...deps, db: deps.db.ofTeam(asset.tenantId) }, asset);
  await eachStep(left.map(finish));
}
