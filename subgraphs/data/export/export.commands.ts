import type { Database, Tx } from "../../../infra/db/database.ts";
import { forJob } from "../../../infra/db/job-bounds.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import type { StoredObject } from "../../../infra/objects/object-store.ts";
import { appendAccountEvent } from "../account-event/append-account-event.ts";
import { Asset } from "../asset/asset.entity.ts";
import { announceState } from "../asset/asset-events.ts";
import type { AssetLimits } from "../asset/asset-limits.ts";
import { lockTeam, requireSpace } from "../asset/asset-space.ts";
import { claimObjectIn, endUpload, putUpload, requireFree, type Upload } from "../asset/asset-upload.commands.ts";
import { releaseConnections } from "../connection/connection-uses.ts";
import { runExport } from "../jobs.ts";
import type { QueryExport } from "./export.entity.ts";
import { exportMachine } from "./export.machine.ts";
import { type ExportClaim, leaseUntil, requireClaim, touchAsset } from "./export-claim.ts";
import type { ExportFailure } from "./export-failure.ts";

/** What an export has read or made. */
export interface ExportProgress {
  rows: number;
  bytes: number;
}

/** An export's place among its team's uploads has its asset's id. */
function uploadOf(of: { assetId: string; tenantId: string; createdAt: Date }): Upload {
  return { id: of.assetId, tenantId: of.tenantId, startedAt: of.createdAt };
}

/**
 * Says that the export is alive and how far it is. Refused as `storage_quota_exceeded` when the team's storage is full by
 * now; throws `StaleClaim` when another process has it.
 */
export function reportExport(
  db: Database,
  claim: ExportClaim,
  { rows, bytes }: ExportProgress,
  limits: AssetLimits,
  now: Date,
): Promise<void> {
  return db.command(async (tx) => {
    await requireClaim(tx, claim);
    await tx.sql(
      "update data.query_export set lease_until = $3, row_count = $4, bytes = $5 where tenant_id = $1 and id = $2",
      [claim.tenantId, claim.exportId, leaseUntil(now), rows, bytes],
    );
    await tx.sql("update data.asset set imported_bytes = $3 where tenant_id = $1 and id = $2", [
      claim.tenantId,
      claim.assetId,
      bytes,
    ]);
    await touchAsset(tx, claim);
    await putUpload(tx, uploadOf(claim), bytes, null, now);
    await requireSpace(tx, claim.tenantId, 0, limits, now);
  }, forJob(claim.tenantId));
}

/** Keeps the bytes from being removed; waits while equal ones just are. */
export function claimExported(
  { db, clock }: { db: Database; clock: Clock },
  claim: ExportClaim,
  object: StoredObject,
): Promise<void> {
  return requireFree(clock, () =>
    db.command((tx) => claimExportedIn(tx, claim, object, clock.now()), forJob(claim.tenantId)),
  );
}

async function claimExportedIn(tx: Tx, claim: ExportClaim, object: StoredObject, now: Date): Promise<boolean> {
  await requireClaim(tx, claim);
  if (!(await claimObjectIn(tx, uploadOf(claim), object, now))) return false;
  await tx.sql("update data.query_export set object_sha256 = $3, lease_until = $4 where tenant_id = $1 and id = $2", [
    claim.tenantId,
    claim.exportId,
    object.sha256,
    leaseUntil(now),
  ]);
  return true;
}

/** Makes the asset ready; refused as `storage_quota_exceeded` when the team's storage cannot take it. */
export function commitExport(
  db: Database,
  claim: ExportClaim,
  made: StoredObject & { rows: number; importedBytes: number },
  limits: AssetLimits,
  now: Date,
): Promise<void> {
  return db.command(async (tx) => {
    const { tenantId, exportId, assetId } = claim;
    await lockTeam(tx, tenantId);
    const row = await requireClaim(tx, claim);
    await endUpload(tx, uploadOf(claim));
    await requireSpace(tx, tenantId, made.bytes, limits, now);
    await tx.sql(
      `update data.query_export set state = $3, row_count = $4, bytes = $5, sql = null, lease_until = null, ended_at = $6
        where tenant_id = $1 and id = $2`,
      [tenantId, exportId, exportMachine.decide(row.state, "stored"), made.rows, made.bytes, now],
    );
    await tx.sql(
      `update data.asset set state = 'ready', sha256 = $3, format = 'file', stored_bytes = $4, imported_bytes = $5,
         ready_at = $6, change_seq = change_seq + 1 where tenant_id = $1 and id = $2 and state = 'importing'`,
      [tenantId, assetId, made.sha256, made.bytes, made.importedBytes, now],
    );
    await releaseConnections(tx, exportId);
    const counts = { row_count: made.rows, bytes: made.bytes };
    const payload = { ...idsOf(row), format: row.format, ...counts };
    await announce(tx, row, now);
    await appendAccountEvent(tx, { tenantId, type: "export.ready", payload, now });
    await sendForNext(tx, tenantId, now);
  }, forJob(claim.tenantId));
}

/** Ends the export without a file. What it took counts against the team's storage until it is cleaned. */
export function failExport(db: Database, claim: ExportClaim, because: ExportFailure, now: Date): Promise<void> {
  return db.command(async (tx) => markFailed(tx, await requireClaim(tx, claim), because, now), forJob(claim.tenantId));
}

/** Fails the export in the state that its locked row has. */
export async function markFailed(tx: Tx, row: QueryExport, because: ExportFailure, now: Date): Promise<void> {
  const { tenantId, id, assetId } = row;
  const next = exportMachine.decide(row.state, "broke");
  if (next !== "cleanup") return;
  await endUpload(tx, uploadOf(row));
  await tx.sql(
    `update data.query_export set state = $3, sql = null, lease_until = null, ended_at = $4
      where tenant_id = $1 and id = $2`,
    [tenantId, id, next, now],
  );
  await tx.sql(
    `update data.asset set state = 'failed', error = $3, error_message = $4, stored_bytes = $5,
       change_seq = change_seq + 1 where tenant_id = $1 and id = $2 and state = 'importing'`,
    [tenantId, assetId, because.word, because.message, row.bytes ?? 0],
  );
  await releaseConnections(tx, id);
  const payload = { ...idsOf(row), format: row.format, row_count: row.rowCount ?? 0, error: because.word };
  await announce(tx, row, now);
  await appendAccountEvent(tx, { tenantId, type: "export.failed", payload, now });
  await sendForNext(tx, tenantId, now);
}

/** The team's oldest export that waits may have waited for this one's end. */
async function sendForNext(tx: Tx, tenantId: string, now: Date): Promise<void> {
  const [next] = await tx.sql<{ id: string }>(
    `select id from data.query_export where tenant_id = $1 and state = 'pending' and cleaned_at is null
      order by created_at, id limit 1`,
    [tenantId],
  );
  if (next) await enqueue(tx, runExport, { exportId: next.id }, now);
}

/** Lets the export go so that any process can take it up: its query runs again from the start. */
export function releaseExport(db: Database, claim: ExportClaim, now: Date): Promise<void> {
  return db.command(async (tx) => {
    const row = await requireClaim(tx, claim);
    const { tenantId, id } = row;
    await endUpload(tx, uploadOf(row));
    await tx.sql(
      `update data.query_export set state = $3, lease_until = null, row_count = null, bytes = null, started_at = null,
         queued_at = $4 where tenant_id = $1 and id = $2`,
      [tenantId, id, exportMachine.decide(row.state, "released"), now],
    );
    await touchAsset(tx, row);
    await enqueue(tx, runExport, { exportId: id }, now);
  }, forJob(claim.tenantId));
}

function idsOf(row: QueryExport) {
  return { export_id: row.id, asset_id: row.assetId, connection_id: row.connectionId };
}

/** Tells what the asset's row says by now. */
async function announce(tx: Tx, of: { tenantId: string; assetId: string }, now: Date): Promise<void> {
  const asset = await tx.row(Asset, "where t.tenant_id = $1 and t.id = $2", [of.tenantId, of.assetId]);
  if (!asset) throw new Error("an export's asset is not there");
  await announceState(tx, asset, now);
}
