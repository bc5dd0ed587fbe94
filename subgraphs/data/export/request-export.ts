import { createHash } from "node:crypto";
import type { Database, Tx } from "../../../infra/db/database.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { insertAsset, newAsset } from "../asset/asset.commands.ts";
import { Asset } from "../asset/asset.entity.ts";
import { ASSET } from "../asset/asset.refusals.ts";
import { announceState } from "../asset/asset-events.ts";
import type { AssetLimits } from "../asset/asset-limits.ts";
import { lockTeam, requirePlace, requireSpace } from "../asset/asset-space.ts";
import type { Connection } from "../connection/connection.entity.ts";
import { CONNECTION_REFERENCE } from "../connection/connection.refusals.ts";
import { pinConnection } from "../connection/connection-uses.ts";
import { findConnection, requireActive } from "../connection/find-connection.ts";
import { runExport } from "../jobs.ts";
import { checkQuery } from "./check-query.ts";
import { EXPORT_FORMATS, type ExportFormat } from "./export.entity.ts";
import { EXPORT } from "./export.refusals.ts";

/** An export as it was asked for; null and absent are the same. */
export interface ExportFields {
  /** A connection's id or name. */
  connectionId?: string | null;
  sql?: string | null;
  /** `parquet` unless told. */
  format?: string | null;
  branch?: string | null;
  /** Whether a finished export of the same query will do. */
  reuse?: boolean | null;
}

export interface RequestedExport {
  asset: Asset;
  /** The asset was there already. */
  reused: boolean;
}

interface CheckedExport {
  connection: Connection;
  statement: string;
  queryHash: string;
  format: ExportFormat;
}

/**
 * Admits the export of a query into a new asset, or answers with a ready one of the last 24 hours when `reuse` allows
 * that. Refused as `invalid_query`, `invalid_import`, `connection_not_found`, `connection_kind`, `connection_scope`,
 * `connection_inactive`, `branch_mismatch`, `imports_in_progress` or `storage_quota_exceeded`; nothing is written then.
 */
export async function requestExport(
  { db, limits }: { db: Database; limits: AssetLimits },
  actor: Actor,
  fields: ExportFields,
  now: Date,
): Promise<RequestedExport> {
  const { tenantId } = actor;
  const checked = await check(db, tenantId, fields);
  return db.command(async (tx) => {
    await lockTeam(tx, tenantId);
    await requireActive(tx, checked.connection, "/connection_id");
    const ready = fields.reuse ? await readyAsset(tx, tenantId, checked, now) : null;
    if (ready) return { asset: ready, reused: true };
    await requirePlace(tx, tenantId, limits, now);
    await requireSpace(tx, tenantId, 1, limits, now);
    return { asset: await admit(tx, tenantId, checked, now), reused: false };
  });
}

async function check(db: Database, tenantId: string, fields: ExportFields): Promise<CheckedExport> {
  const idOrName = fields.connectionId ?? "";
  const format = formatOf(fields.format);
  if (!idOrName) throw invalid("/connection_id", "A query needs the connection that it reads.");
  const sql = fields.sql ?? "";
  const statement = await checkQuery(sql);
  const connection = await findConnection(db, { tenantId, idOrName });
  const field = "/connection_id";
  if (!connection) throw new Refused(CONNECTION_REFERENCE.connection_not_found, { field });
  if (connection.kind === "wandb") throw new Refused(CONNECTION_REFERENCE.connection_kind, { field });
  if (connection.scope === "write") throw new Refused(CONNECTION_REFERENCE.connection_scope, { field });
  if (fields.branch && fields.branch !== connection.branch)
    throw new Refused(EXPORT.branch_mismatch, { field: "/branch" });
  return { connection, statement, queryHash: createHash("sha256").update(sql.trim()).digest("hex"), format };
}

function formatOf(text: string | null | undefined): ExportFormat {
  const format = EXPORT_FORMATS.find((known) => known === (text || "parquet"));
  if (!format) throw invalid("/format", `format must be ${EXPORT_FORMATS.join(" or ")}.`);
  return format;
}

function invalid(field: string, message: string): Refused {
  return new Refused(ASSET.invalid_import, { field, message });
}

/** The newest ready asset that the same request made. A connection never changes its credential, so its id is enough. */
function readyAsset(
  tx: Tx,
  tenantId: string,
  { connection, queryHash, format }: CheckedExport,
  now: Date,
): Promise<Asset | null> {
  return tx.row(
    Asset,
    `join data.query_export e on e.tenant_id = t.tenant_id and e.asset_id = t.id
      where e.tenant_id = $1 and e.connection_id = $2 and e.query_hash = $3 and e.format = $4
        and e.branch is not distinct from $5 and e.state = 'ready' and e.ended_at > $6 and t.state = 'ready'
      order by t.id desc limit 1`,
    [tenantId, connection.id, queryHash, format, connection.branch, new Date(now.getTime() - LIMITS.exportReuseMs)],
  );
}

async function admit(tx: Tx, tenantId: string, checked: CheckedExport, now: Date): Promise<Asset> {
  const { connection, statement, queryHash, format } = checked;
  const exportId = newId("export", now);
  const { pin } = await pinConnection(tx, {
    ...{ tenantId, connectionId: connection.id, holderId: exportId, now, field: "/connection_id" },
  });
  const asset = newAsset({
    tenantId,
    kind: "connection_query",
    name: `data.${format}`,
    region: connection.region,
    now,
  });
  await insertAsset(tx, asset);
  await tx.sql(
    `insert into data.query_export (id, tenant_id, asset_id, connection_id, secret_id, secret_version, sql, query_hash,
       branch, format, state, created_at, deadline_at, queued_at, fence)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'pending', $11, $12, $11, 0)`,
    [
      ...[exportId, tenantId, asset.id, connection.id, pin.secretId, pin.version, statement, queryHash],
      ...[connection.branch, format, now, new Date(now.getTime() + LIMITS.exportMs)],
    ],
  );
  await enqueue(tx, runExport, { exportId }, now);
  await announceState(tx, asset, now);
  return asset;
}
