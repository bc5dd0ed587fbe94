import type { Queryer, Tx } from "../../../infra/db/database.ts";

import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";

import { Asset } from "./asset.entity.ts";

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

/** How many holders each of these assets has. */
export async function useCounts(q: Queryer, tenantId: string, ids: readonly string[]): Promise<number[]> {
  const rows = await q.sql<{ asset_id: string; holders: bigint }>(
    "select asset_id, count(*) as holders from data.asset_pin where tenant_id = $1 and asset_id = any($2) group by asset_id",
    [tenantId, ids],
  );
  const found = new Map(rows.map((row) => [row.asset_id, Number(row.holders)]));
  return ids.map((id) => found.get(id) ?? 0);
}

/** A new asset, on its way, with nothing stored. */
export function newAsset(of: {
  tenantId: string;
  kind: string;
  name: string;
  /** Of the connection that it comes from. */
  region?: string | null;
  now: Date;
}): Asset {
  return Object.assign(new Asset(), {
    id: newId("asset", of.now),
    tenantId: of.tenantId,
    kind: of.kind,
    name: of.name,
    state: "importing" as const,
    revision: null,
    sha256: null,
    format: null,
    region: of.region ?? null,
    storedBytes: 0,
    importedBytes: 0,
    createdAt: of.now,
    readyAt: null,
    deletedAt: null,
    error: null,
    errorMessage: null,
    changeSeq: 1,
  });
}

export async function insertAsset(tx: Tx, asset: Asset): Promise<void> {
  await tx.sql(
    `insert into data.asset (id, tenant_id, kind, name, state, revision, sha256, format, stored_bytes, imported_bytes,
       created_at, ready_at, change_seq, region)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
    [
      ...[asset.id, asset.tenantId, asset.kind, asset.name, asset.state, asset.revision, asset.sha256, asset.format],
      ...[asset.storedBytes, asset.importedBytes, asset.createdAt, asset.readyAt, asset.changeSeq],
      asset.region,
    ],
  );
}
