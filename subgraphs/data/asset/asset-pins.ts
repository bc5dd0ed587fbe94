import type { Queryer, Tx } from "../../../infra/db/database.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { AssetPort, PinnedAsset, ReferenceField } from "../published.ts";
import { Asset, type AssetFormat } from "./asset.entity.ts";
import { ASSET_REFERENCE } from "./asset.refusals.ts";

const isAssetId = (id: string) => isId("asset", id);

type ReadyAsset = Asset & { sha256: string; format: AssetFormat };

interface RegionAsk {
  regions?: readonly string[];
  field?: ReferenceField;
}

/** Assets for those who run work. */
export const assetPins: AssetPort = {
  async check(q: Queryer, ask): Promise<void> {
    const rows = await q.rows(Asset, "where t.tenant_id = $1 and t.id = any($2)", [
      ask.tenantId,
      ask.assetIds.filter(isAssetId),
    ]);
    requireRegions(requireReady(ask.assetIds, rows, ask.field), ask);
  },

  async pin(tx: Tx, ask): Promise<PinnedAsset[]> {
    // Shared locks, in one order: a deletion waits for us, or we see what it did.
    const rows = await tx.rows(Asset, "where t.tenant_id = $1 and t.id = any($2) order by t.id for share", [
      ask.tenantId,
      ask.assetIds.filter(isAssetId),
    ]);
    const ready = requireReady(ask.assetIds, rows, ask.field ?? "");
    requireRegions(ready, ask);
    await tx.sql(
      `insert into data.asset_pin (holder_id, asset_id, tenant_id, created_at)
       select $1, id, $2, $3 from unnest($4::text[]) id on conflict (holder_id, asset_id) do nothing`,
      [ask.holderId, ask.tenantId, ask.now, [...new Set(ask.assetIds)]],
    );
    return ready.map(pinned);
  },

  async release(tx: Tx, holderId: string): Promise<void> {
    await tx.sql("delete from data.asset_pin where holder_id = $1", [holderId]);
  },
};

function requireReady(ids: readonly string[], rows: readonly Asset[], field: ReferenceField): ReadyAsset[] {
  const found = new Map(rows.map((a) => [a.id, a]));
  return ids.map((id, index) => {
    const asset = found.get(id);
    const at = { field: fieldOf(field, index, ids.length) };
    if (!asset || asset.state === "deleted" || asset.state === "deleting")
      throw new Refused(ASSET_REFERENCE.asset_not_found, at);
    if (asset.state !== "ready" || asset.sha256 === null || asset.format === null)
      throw new Refused(ASSET_REFERENCE.asset_not_ready, { ...at, message: `The asset ${id} is ${asset.state}.` });
    return asset as ReadyAsset;
  });
}

/** Rows of a query stay where the work's data may be; assets that are of no region may be anywhere. */
function requireRegions(assets: readonly ReadyAsset[], { regions = [], field = "" }: RegionAsk): void {
  if (regions.length === 0) return;
  for (const [index, { id, region }] of assets.entries()) {
    if (region === null || regions.includes(region)) continue;
    throw new Refused(ASSET_REFERENCE.asset_region, {
      field: fieldOf(field, index, assets.length),
      message: `The asset ${id} is of the region ${region}, which policy.data_regions does not name.`,
    });
  }
}

function pinned({ id, name, sha256, storedBytes, format }: ReadyAsset): PinnedAsset {
  return { id, name, sha256, bytes: storedBytes, format };
}

function fieldOf(field: ReferenceField, index: number, count: number): string {
  if (typeof field === "function") return field(index);
  return count === 1 ? field : `${field}/${index}`;
}
