import type { Database, Tx } from "../../../infra/db/database.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { storageUse } from "./asset.commands.ts";
import { Asset, type AssetFormat } from "./asset.entity.ts";
import { ASSET } from "./asset.refusals.ts";
import type { AssetLimits } from "./asset-limits.ts";

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
    const [row] = await tx.sql<{ live: bigint }>(
      "select count(*) as live from data.asset_upload where tenant_id = $1 and seen_at > $2",
      [tenantId, new Date(now.getTime() - LIMITS.assetUploadSilenceMs)],
    );
    if (row!.live >= BigInt(limits.importsAtOnce)) throw new Refused(ASSET.imports_in_progress);
    await requireSpace(tx, tenantId, 1, limits, now);
    const upload = { id: newId("upload", now), tenantId, startedAt: now };
    await put(tx, upload, 0, null, now);
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
    await put(tx, upload, stagedBytes, null, now);
    await requireSpace(tx, upload.tenantId, 0, limits, now);
  });
}

/**
 * Keeps stored bytes from being removed until the upload is committed or abandoned. The bytes may have gone between their
 * storing and this: the caller looks after them once more. `asset_commit_failed` when they are just being removed.
 */
export function claimObject(
  db: Database,
  upload: Upload,
  object: { sha256: string; bytes: number },
  now: Date,
): Promise<void> {
  return db.command(async (tx) => {
    const [row] = await tx.sql<{ removing_since: Date | null }>(
      `insert into data.asset_object (sha256, bytes, created_at) values ($1, $2, $3)
       on conflict (sha256) do update set bytes = excluded.bytes returning removing_since`,
      [object.sha256, object.bytes, now],
    );
    if (row!.removing_since) throw new Refused(ASSET.asset_commit_failed);
    await put(tx, upload, object.bytes, object.sha256, now);
  });
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
    const asset: Asset = Object.assign(new Asset(), {
      id: newId("asset", now),
      tenantId: upload.tenantId,
      kind: "upload",
      name: stored.name,
      state: "ready" as const,
      revision: null,
      sha256: stored.sha256,
      format: stored.format,
      storedBytes: stored.bytes,
      importedBytes: stored.importedBytes,
      createdAt: now,
      readyAt: now,
      deletedAt: null,
      error: null,
    });
    await tx.sql(
      `insert into data.asset (id, tenant_id, kind, name, state, sha256, format, stored_bytes, imported_bytes, created_at, ready_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)`,
      [
        asset.id,
        asset.tenantId,
        asset.kind,
        asset.name,
        asset.state,
        asset.sha256,
        asset.format,
        asset.storedBytes,
        asset.importedBytes,
        now,
      ],
    );
    return asset;
  });
}

/** Forgets an upload that did not become an asset. */
export function abandonUpload(db: Database, upload: Upload): Promise<void> {
  return db.command((tx) => endUpload(tx, upload));
}

async function endUpload(tx: Tx, upload: Upload): Promise<void> {
  await tx.sql("delete from data.asset_upload where tenant_id = $1 and id = $2", [upload.tenantId, upload.id]);
}

/** Writes the upload's row, also when a sweep took it because it had been silent for long. */
async function put(tx: Tx, upload: Upload, stagedBytes: number, sha256: string | null, now: Date): Promise<void> {
  await tx.sql(
    `insert into data.asset_upload (id, tenant_id, staged_bytes, sha256, started_at, seen_at) values ($1, $2, $3, $4, $5, $6)
     on conflict (id) do update set staged_bytes = excluded.staged_bytes, sha256 = excluded.sha256, seen_at = excluded.seen_at`,
    [upload.id, upload.tenantId, stagedBytes, sha256, upload.startedAt, now],
  );
}

/** Uploads of one team begin and end one after the other, so that counts and sums are true while they are looked at. */
async function lockTeam(tx: Tx, tenantId: string): Promise<void> {
  await tx.sql("select pg_advisory_xact_lock(hashtextextended('data.asset/' || $1, 0))", [tenantId]);
}

async function requireSpace(
  tx: Tx,
  tenantId: string,
  moreBytes: number,
  limits: AssetLimits,
  now: Date,
): Promise<void> {
  const { storedBytes, stagedBytes } = await storageUse(tx, tenantId, now);
  if (storedBytes + stagedBytes + moreBytes > limits.quotaBytes)
    throw new Refused(ASSET.storage_quota_exceeded, {
      message: `The team's assets may take ${limits.quotaBytes} bytes; ${storedBytes} are stored and ${stagedBytes} are on their way.`,
      extra: { storage_quota_bytes: limits.quotaBytes, stored_bytes: storedBytes, staged_bytes: stagedBytes },
    });
}
