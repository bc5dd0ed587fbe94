import type { Database, Queryer } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { Asset } from "./asset.entity.ts";
import { assetMachine } from "./asset.machine.ts";
import { ASSET } from "./asset.refusals.ts";

/** Assets that can be read: a deleted one for 30 days. */
const READABLE = "(t.deleted_at is null or t.deleted_at > $2)";
const forgottenBefore = (now: Date) => new Date(now.getTime() - LIMITS.deletedAssetMs);

/** The readable assets of these ids, in the order asked for; null where there is none. */
export async function assetsById(
  q: Queryer,
  tenantId: string,
  ids: readonly string[],
  now: Date,
): Promise<(Asset | null)[]> {
  const rows = await q.rows(Asset, `where t.tenant_id = $1 and ${READABLE} and t.id = any($3)`, [
    tenantId,
    forgottenBefore(now),
    ids,
  ]);
  const found = new Map(rows.map((a) => [a.id, a]));
  return ids.map((id) => found.get(id) ?? null);
}

/** Assets that are not deleted, newest first, before one; ids sort by creation. */
export function listAssets(q: Queryer, tenantId: string, before: string | null, limit: number): Promise<Asset[]> {
  return q.rows(
    Asset,
    `where t.tenant_id = $1 and t.state <> 'deleted' and ($2::text is null or t.id < $2)
     order by t.id desc limit $3`,
    [tenantId, before, limit],
  );
}

/** What a team's assets take. */
export interface StorageUse {
  storedBytes: number;
  /** Of uploads that are under way. */
  stagedBytes: number;
}

export async function storageUse(q: Queryer, tenantId: string, now: Date): Promise<StorageUse> {
  const [row] = await q.sql<{ stored: string; staged: string }>(
    `select (select coalesce(sum(stored_bytes), 0) from data.asset where tenant_id = $1 and state <> 'deleted')::text as stored,
            (select coalesce(sum(staged_bytes), 0) from data.asset_upload where tenant_id = $1 and seen_at > $2)::text as staged`,
    [tenantId, new Date(now.getTime() - LIMITS.assetUploadSilenceMs)],
  );
  return { storedBytes: Number(row!.stored), stagedBytes: Number(row!.staged) };
}

/**
 * Deletes an asset. It stays readable as deleted for 30 days; its bytes go when nothing else refers to them.
 * `not_found` for an unknown or deleted one, `asset_in_use` while it is imported or a run holds it.
 */
export function deleteAsset(db: Database, actor: Actor, id: string, now: Date): Promise<Asset> {
  return db.command(async (tx) => {
    if (!isId("asset", id)) throw new Refused(COMMON.not_found);
    // The lock makes a run that takes the asset just now wait for us, or us for it.
    const asset = await tx.row(Asset, "where t.tenant_id = $1 and t.id = $2 for update", [actor.tenantId, id]);
    if (!asset || asset.state === "deleted") throw new Refused(COMMON.not_found);
    const next = assetMachine.decide(asset.state, "delete");
    if (next !== "deleted") throw new Refused(ASSET.asset_in_use, { message: "The asset is still being imported." });
    const [holder] = await tx.sql<{ holder_id: string }>(
      "select holder_id from data.asset_pin where tenant_id = $1 and asset_id = $2 order by created_at limit 1",
      [actor.tenantId, id],
    );
    if (holder)
      throw new Refused(ASSET.asset_in_use, {
        message: `The asset is used by ${holder.holder_id}.`,
        extra: { holder_id: holder.holder_id },
      });
    await tx.sql(
      "update data.asset set state = $3, deleted_at = $4, stored_bytes = 0 where tenant_id = $1 and id = $2",
      [actor.tenantId, id, next, now],
    );
    return Object.assign(asset, { state: next, deletedAt: now, storedBytes: 0 });
  });
}
