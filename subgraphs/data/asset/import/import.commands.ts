import type { Database, Tx } from "../../../../infra/db/database.ts";
import { eachStep } from "../../../../infra/db/each-step.ts";
import { forJob } from "../../../../infra/db/job-bounds.ts";
import { enqueue } from "../../../../infra/db/outbox.ts";
import { teamsInTurn } from "../../../../infra/db/teams-in-turn.ts";
import type { Clock } from "../../../../infra/kernel/clock.ts";
import { Refused } from "../../../../infra/kernel/refusal.ts";
import type { StoredObject } from "../../../../infra/objects/object-store.ts";
import { importAsset } from "../../jobs.ts";
import { dataTopics } from "../../topics.ts";
import { Asset, type AssetFormat, AssetImport } from "../asset.entity.ts";
import { ASSET } from "../asset.refusals.ts";
import { announceState } from "../asset-events.ts";
import type { AssetLimits } from "../asset-limits.ts";
import { lockTeam, requireSpace } from "../asset-space.ts";
import { claimObjectIn, endUpload, putUpload, requireFree, type Upload } from "../asset-upload.commands.ts";
import { endClaim, type ImportClaim, renewClaim } from "./import-claim.ts";

/** An import's place among its team's uploads has its asset's id. */
const uploadOf = (claim: ImportClaim): Upload => ({
  id: claim.assetId,
  tenantId: claim.tenantId,
  startedAt: claim.startedAt,
});

/**
 * Says that the import is alive and how far it is. Refused as `storage_quota_exceeded` when the team's storage is full by
 * now; throws `StaleClaim` when another process has it.
 */
export function reportImport(
  db: Database,
  claim: ImportClaim,
  importedBytes: number,
  limits: AssetLimits,
  now: Date,
): Promise<void> {
  return db.command(async (tx) => {
    await renewClaim(tx, claim, now);
    await tx.sql(
      `update data.asset set imported_bytes = $3, change_seq = change_seq + 1
        where tenant_id = $1 and id = $2 and state = 'importing' and imported_bytes <> $3`,
      [claim.tenantId, claim.assetId, importedBytes],
    );
    await putUpload(tx, uploadOf(claim), importedBytes, null, now);
    await requireSpace(tx, claim.tenantId, 0, limits, now);
    tx.wake(dataTopics.asset(claim.assetId));
  }, forJob(claim.tenantId));
}

/** Keeps the bytes from being removed; waits while equal ones just are. */
export function claimImported(
  { db, clock }: { db: Database; clock: Clock },
  claim: ImportClaim,
  object: StoredObject,
): Promise<void> {
  return requireFree(clock, () =>
    db.command(async (tx) => {
      const now = clock.now();
      await renewClaim(tx, claim, now);
      return claimObjectIn(tx, uploadOf(claim), object, now);
    }, forJob(claim.tenantId)),
  );
}

/** What an import came to. */
export interface Imported extends StoredObject {
  importedBytes: number;
  format: AssetFormat;
  revision: string | null;
}

/** Makes the asset ready; refused as `storage_quota_exceeded` when the team's storage cannot take it. */
export function commitImport(
  db: Database,
  claim: ImportClaim,
  imported: Imported,
  limits: AssetLimits,
  now: Date,
): Promise<void> {
  return db.command(async (tx) => {
    await lockTeam(tx, claim.tenantId);
    await endClaim(tx, claim);
    await endUpload(tx, uploadOf(claim));
    await requireSpace(tx, claim.tenantId, imported.bytes, limits, now);
    await tx.sql(
      `update data.asset set state = 'ready', sha256 = $3, format = $4, stored_bytes = $5, imported_bytes = $6,
         revision = $7, ready_at = $8, change_seq = change_seq + 1 where tenant_id = $1 and id = $2 and state = 'importing'`,
      [
        ...[claim.tenantId, claim.assetId, imported.sha256, imported.format, imported.bytes],
        ...[imported.importedBytes, imported.revision, now],
      ],
    );
    await announce(tx, claim, now);
  }, forJob(claim.tenantId));
}

/** Ends the import without an asset; its row stays and says why. */
export function failImport(db: Database, claim: ImportClaim, because: Refused, now: Date): Promise<void> {
  return db.command(async (tx) => {
    await endClaim(tx, claim);
    await markFailed(tx, claim, because, now);
  }, forJob(claim.tenantId));
}

/** Lets the import go so that any process can take it up. Throws `StaleClaim` when it is another's already. */
export function releaseImport(db: Database, claim: ImportClaim, now: Date): Promise<void> {
  return db.command(async (tx) => {
    await renewClaim(tx, claim, now);
    await tx.sql("update data.asset_import set lease_until = $3 where tenant_id = $1 and asset_id = $2", [
      claim.tenantId,
      claim.assetId,
      now,
    ]);
    await enqueue(tx, importAsset, { assetId: claim.assetId }, now);
  }, forJob(claim.tenantId));
}

/**
 * Puts imports right that no living process has: one that needs no credential is done by a job, one that does, or whose
 * time is over, has failed. At most `limit`; answers how many there were.
 */
export async function settleAbandonedImports(db: Database, now: Date, limit = 100): Promise<number> {
  const order = teamsInTurn("t.tenant_id", "t.lease_until");
  const rows = await db.rows(AssetImport, `where t.lease_until <= $1 order by ${order} limit $2`, [now, limit]);
  const settle = (row: AssetImport) => db.command((tx) => settleAbandoned(tx, row, now), forJob(row.tenantId));
  await eachStep(rows.map((row) => () => settle(row)));
  return rows.length;
}

async function settleAbandoned(tx: Tx, { assetId, tenantId }: AssetImport, now: Date): Promise<void> {
  const row = await tx.row(
    AssetImport,
    "where t.tenant_id = $1 and t.asset_id = $2 and t.lease_until <= $3 for update skip locked",
    [tenantId, assetId, now],
  );
  if (!row) return; // its process reported meanwhile, or ended it
  const late = row.deadlineAt <= now;
  if (row.resumable && !late) return enqueue(tx, importAsset, { assetId }, now);
  await endClaim(tx, row);
  await markFailed(tx, row, new Refused(late ? ASSET.source_timeout : ASSET.import_interrupted), now);
}

async function markFailed(
  tx: Tx,
  of: { tenantId: string; assetId: string },
  because: Refused,
  now: Date,
): Promise<void> {
  await tx.sql("delete from data.asset_upload where tenant_id = $1 and id = $2", [of.tenantId, of.assetId]);
  await tx.sql(
    `update data.asset set state = 'failed', error = $3, error_message = $4, change_seq = change_seq + 1
      where tenant_id = $1 and id = $2 and state = 'importing'`,
    [of.tenantId, of.assetId, because.kind.code, because.message],
  );
  await announce(tx, of, now);
}

/** Tells what the row says by now. */
async function announce(tx: Tx, of: { tenantId: string; assetId: string }, now: Date): Promise<void> {
  const asset = await tx.row(Asset, "where t.tenant_id = $1 and t.id = $2", [of.tenantId, of.assetId]);
  if (!asset) throw new Error("an import's asset is not there");
  await announceState(tx, asset, now);
}
