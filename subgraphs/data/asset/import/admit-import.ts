import type { Database, Tx } from "../../../../infra/db/database.ts";
import { enqueue } from "../../../../infra/db/outbox.ts";
import type { Actor } from "../../../../infra/kernel/actor.ts";
import { LIMITS } from "../../../../infra/kernel/limits.ts";
import { importAsset } from "../../jobs.ts";
import type { SecretBox } from "../../secret/secret-box.ts";
import { insertAsset, newAsset } from "../asset.commands.ts";
import type { Asset } from "../asset.entity.ts";
import { announceState } from "../asset-events.ts";
import type { AssetLimits } from "../asset-limits.ts";
import { lockTeam, requirePlace, requireSpace } from "../asset-space.ts";
import { putUpload } from "../asset-upload.commands.ts";
import { type ImportClaim, sealImport } from "./import-claim.ts";
import type { SourceImport } from "./read-import.ts";
import { nameOf } from "./source-request.ts";

export interface AdmissionDeps {
  db: Database;
  box: SecretBox;
  limits: AssetLimits;
}

/** An admitted import: the asset is `importing`. */
export interface AdmittedImport {
  asset: Asset;
  /** Given when a credential came along: this process has to fetch the source. Otherwise a job does. */
  claim: ImportClaim | null;
}

/** Admits an import; `imports_in_progress` or `storage_quota_exceeded` otherwise. The credential is not written down. */
export function admitImport(
  { db, box, limits }: AdmissionDeps,
  actor: Actor,
  { source, token }: SourceImport,
  now: Date,
): Promise<AdmittedImport> {
  const { tenantId } = actor;
  return db.command(async (tx) => {
    await lockTeam(tx, tenantId);
    await requirePlace(tx, tenantId, limits, now);
    await requireSpace(tx, tenantId, 1, limits, now);
    const asset = newAsset({ tenantId, kind: source.kind, name: nameOf(source), now });
    const deadlineAt = new Date(now.getTime() + LIMITS.assetImportMs);
    const claim = { assetId: asset.id, tenantId, fence: token ? 1 : 0, startedAt: now, deadlineAt, source };
    await insertAsset(tx, asset);
    await putUpload(tx, { id: asset.id, tenantId, startedAt: now }, 0, null, now);
    await insertImport(tx, box, claim, { resumable: token === null, now });
    if (token === null) await enqueue(tx, importAsset, { assetId: asset.id }, now);
    await announceState(tx, asset, now);
    return { asset, claim: token ? claim : null };
  });
}

async function insertImport(
  tx: Tx,
  box: SecretBox,
  claim: ImportClaim,
  { resumable, now }: { resumable: boolean; now: Date },
): Promise<void> {
  const sealed = sealImport(box, claim);
  await tx.sql(
    `insert into data.asset_import (asset_id, tenant_id, master_key_id, wrapped_key, ciphertext, resumable, fence,
       lease_until, deadline_at, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      ...[claim.assetId, claim.tenantId, sealed.masterKeyId, sealed.wrappedKey, sealed.ciphertext, resumable],
      ...[claim.fence, new Date(now.getTime() + LIMITS.assetImportLeaseMs), claim.deadlineAt, now],
    ],
  );
}
