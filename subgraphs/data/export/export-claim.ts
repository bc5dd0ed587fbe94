import type { Database, Tx } from "../../../infra/db/database.ts";
import { forJob } from "../../../infra/db/job-bounds.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { appendAccountEvent } from "../account-event/append-account-event.ts";
import type { SecretVersionPin } from "../connection/open-database.ts";
import { StaleClaim } from "../stale-claim.ts";
import { dataTopics } from "../topics.ts";
import { type ExportFormat, QueryExport } from "./export.entity.ts";
import { exportMachine } from "./export.machine.ts";

/** An export as the process has it that runs the query. */
export interface ExportClaim {
  exportId: string;
  assetId: string;
  tenantId: string;
  /** Counts the processes that had it; writes of an earlier one come too late. */
  fence: number;
  connectionId: string;
  pin: SecretVersionPin;
  sql: string;
  format: ExportFormat;
  createdAt: Date;
  /** When it fails whatever it is at. */
  deadlineAt: Date;
}

export function leaseUntil(now: Date): Date {
  return new Date(now.getTime() + LIMITS.exportLeaseMs);
}

/**
 * Takes up an export that waits; null when there is none, its time is over, or its team has as many under way as it may:
 * it goes on waiting.
 */
export async function claimExport(db: Database, exportId: string, now: Date): Promise<ExportClaim | null> {
  const found = await db.row(QueryExport, "where t.id = $1", [exportId]);
  if (!found) return null;
  return db.command(async (tx) => {
    await tx.sql("select pg_advisory_xact_lock(hashtextextended('data.export/' || $1, 0))", [found.tenantId]);
    const row = await tx.row(QueryExport, "where t.id = $1 for update", [exportId]);
    if (!row || row.sql === null || row.deadlineAt <= now) return null;
    const next = exportMachine.decide(row.state, "claimed");
    if (next !== "running") return null;
    if (await isBusy(tx, row.tenantId, now)) return null; // the end of one of those sends for it
    const fence = row.fence + 1;
    await tx.sql(
      `update data.query_export set state = $3, fence = $4, lease_until = $5, started_at = $6
        where tenant_id = $1 and id = $2`,
      [row.tenantId, exportId, next, fence, leaseUntil(now), now],
    );
    await touchAsset(tx, row);
    const { tenantId, assetId, connectionId, format } = row;
    const payload = { export_id: exportId, asset_id: assetId, connection_id: connectionId, format };
    await appendAccountEvent(tx, { tenantId, type: "export.running", payload, now });
    const pin = { secretId: row.secretId, version: row.secretVersion };
    const { sql, createdAt, deadlineAt } = row;
    return { exportId, assetId, tenantId, fence, connectionId, pin, sql, format, createdAt, deadlineAt };
  }, forJob(found.tenantId));
}

async function isBusy(tx: Tx, tenantId: string, now: Date): Promise<boolean> {
  const busy = await tx.sql(
    "select 1 from data.query_export where tenant_id = $1 and state = 'running' and cleaned_at is null and lease_until > $2 limit $3",
    [tenantId, now, LIMITS.exportsAtOnce],
  );
  return busy.length >= LIMITS.exportsAtOnce;
}

/** The export's row, locked until the transaction ends. Throws `StaleClaim` when it is not the process's own any more. */
export async function requireClaim(
  tx: Tx,
  claim: Pick<ExportClaim, "tenantId" | "exportId" | "fence">,
): Promise<QueryExport> {
  const row = await tx.row(
    QueryExport,
    "where t.tenant_id = $1 and t.id = $2 and t.fence = $3 and t.state = 'running' for update",
    [claim.tenantId, claim.exportId, claim.fence],
  );
  if (!row) throw new StaleClaim("export");
  return row;
}

/** Tells those who follow the asset that something of its export changed. */
export async function touchAsset(tx: Tx, { tenantId, assetId }: { tenantId: string; assetId: string }): Promise<void> {
  await tx.sql("update data.asset set change_seq = change_seq + 1 where tenant_id = $1 and id = $2", [
    tenantId,
    assetId,
  ]);
  tx.wake(dataTopics.asset(assetId));
}
