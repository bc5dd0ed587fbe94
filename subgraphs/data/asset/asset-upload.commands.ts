import type { Database, Tx } from "../../../infra/db/database.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { claimWhenFree, removalsDeadBefore } from "../../../infra/objects/claim-bytes.ts";
import type { StoredObject } from "../../../infra/objects/object-store.ts";
import { insertAsset, newAsset } from "./asset.commands.ts";
import type { Asset, AssetFormat } from "./asset.entity.ts";
import { ASSET } from "./asset.refusals.ts";
import { announceState } from "./asset-events.ts";
import type { AssetLimits } from "./asset-limits.ts";
import { lockTeam, requirePlace, requireSpace } from "./asset-space.ts";

/** An upload under way, as its process knows it. */
export interface Upload {
  readonly id: string;
  readonly tenantId: string;
  readonly startedAt: Date;
}

/** Takes one of the team's places for uploads; refused as `imports_in_progress` or `storage_quota_exceeded`. */
export function beginUpload(db: Database, tenantId: string, limits: AssetLimits, now: Date): Promise<Upload> {
  return db.command(async (tx) => {
    await lockTeam(tx, tenantId);
    await requirePlace(tx, tenantId, limits, now);
    await requireSpace(tx, tenantId, 1, limits, now);
    const upload = { id: newId("upload", now), tenantId, startedAt: now };
    await putUpload(tx, upload, 0, null, now);
    return upload;
  });
}

/** Says that the upload is alive and how far it is; refused when the team's storage is full by now. */
export function reportUpload(
  db: Database,
  upload: Upload,
  stagedBytes: number,
  limits: AssetLimits,
  now: Date,
): Promise<void> {
  return db.command(async (tx) => {
    await putUpload(tx, upload, stagedBytes, null, now);
    await requireSpace(tx, upload.tenantId, 0, limits, now);
  });
}

/** Keeps bytes from being removed until the upload is committed or abandoned; waits while equal ones just are. */
export function claimObject(
  { db, clock }: { db: Database; clock: Clock },
  upload: Upload,
  object: StoredObject,
): Promise<void> {
  return requireFree(clock, () => db.command((tx) => claimObjectIn(tx, upload, object, clock.now())));
}

/** Repeats a claim while equal bytes are being removed; `asset_commit_failed` when that takes beyond all measure. */
export async function requireFree(clock: Clock, claim: () => Promise<boolean>): Promise<void> {
  if (await claimWhenFree(clock, claim)) return;
  throw new Refused(ASSET.asset_commit_failed, {
    message: "The same content was just being deleted.",
    fix: "Repeat the request.",
  });
}

/** `claimObject` within a transaction; false when the bytes are just being removed, and nothing is kept then. */
export async function claimObjectIn(tx: Tx, upload: Upload, object: StoredObject, now: Date): Promise<boolean> {
  const [row] = await tx.sql<{ removing_since: Date | null }>(
    `insert into data.asset_object (sha256, bytes, created_at) values ($1, $2, $3)
     on conflict (sha256) do update set bytes = excluded.bytes,
       removing_since = case when asset_object.removing_since > $4 then asset_object.removing_since end
     returning removing_since`,
    [object.sha256, object.bytes, now, removalsDeadBefore(now)],
  );
  if (row!.removing_since) return false;
  await putUpload(tx, upload, object.bytes, object.sha256, now);
  return true;
}

/** Makes the asset of a claimed upload; refused as `storage_quota_exceeded` when the team's storage cannot take it. */
export function commitUpload(
  db: Database,
  upload: Upload,
  stored: { name: string; sha256: string; bytes: number; importedBytes: number; format: AssetFormat },
  limits: AssetLimits,
  now: Date,
): Promise<Asset> {
  return db.command(async (tx) => {
    await lockTeam(tx, upload.tenantId);
    await endUpload(tx, upload);
    await requireSpace(tx, upload.tenantId, stored.bytes, limits, now);
    const asset = newAsset({ tenantId: upload.tenantId, kind: "upload", name: stored.name, now });
    const { sha256, format, importedBytes, bytes: storedBytes } = stored;
    Object.assign(asset, { state: "ready", readyAt: now, sha256, format, importedBytes, storedBytes });
    await insertAsset(tx, asset);
    await announceState(tx, asset, now);
    return asset;
  });
}

/** Forgets an upload that did not become an asset. */
export function abandonUpload(db: Database, upload: Upload): Promise<void> {
  return db.command((tx) => endUpload(tx, upload));
}

export async function endUpload(tx: Tx, upload: Upload): Promise<void> {
  await tx.sql("delete from data.asset_upload where tenant_id = $1 and id = $2", [upload.tenantId, upload.id]);
}

/** Writes the upload's row, also when a sweep took it because it had been silent for long. What it claimed stays so. */
export async function putUpload(
  tx: Tx,
  upload: Upload,
  stagedBytes: number,
  sha256: string | null,
  now: Date,
): Promise<void> {
  await tx.sql(
    `insert into data.asset_upload (id, tenant_id, staged_bytes, sha256, started_at, seen_at) values ($1, $2, $3, $4, $5, $6)
     on conflict (id) do update set staged_bytes = excluded.staged_bytes,
       sha256 = coalesce(excluded.sha256, asset_upload.sha256), seen_at = excluded.seen_at`,
    [upload.id, upload.tenantId, stagedBytes, sha256, upload.startedAt, now],
  );
}
