import type { Database, Tx } from "../../../../infra/db/database.ts";
import { forJob } from "../../../../infra/db/job-bounds.ts";
import { LIMITS } from "../../../../infra/kernel/limits.ts";
import type { Sealed, SecretBox } from "../../secret/secret-box.ts";
import { StaleClaim } from "../../stale-claim.ts";
import { AssetImport } from "../asset.entity.ts";
import type { SourceRequest } from "./source-request.ts";

/** An import as the process has it that fetches the source. */
export interface ImportClaim {
  assetId: string;
  tenantId: string;
  /** Counts the processes that had it; writes of an earlier one come too late. */
  fence: number;
  startedAt: Date;
  /** When it fails whatever it is at. */
  deadlineAt: Date;
  source: SourceRequest;
}

/** The place of an import's request, which its ciphertext is bound to. */
export const importSealContext = (of: { tenantId: string; assetId: string }) => `import/${of.tenantId}/${of.assetId}`;

export function sealImport(box: SecretBox, claim: ImportClaim): Sealed {
  return box.seal(Buffer.from(JSON.stringify(claim.source)), importSealContext(claim));
}

/**
 * Takes up an import that needs no credential of its caller and that no living process has; null when there is none.
 * Throws when the request was sealed with a master key that is not here any more.
 */
export async function claimImport(
  db: Database,
  box: SecretBox,
  assetId: string,
  now: Date,
): Promise<ImportClaim | null> {
  const [found] = await db.sql<{ tenant_id: string }>("select tenant_id from data.asset_import where asset_id = $1", [
    assetId,
  ]);
  if (!found) return null;
  return db.command(async (tx) => {
    const row = await tx.row(
      AssetImport,
      `where t.asset_id = $1 and t.resumable and (t.fence = 0 or t.lease_until <= $2) and t.deadline_at > $2 for update`,
      [assetId, now],
    );
    if (!row) return null;
    const source = JSON.parse(box.open(row, importSealContext(row)).toString("utf8")) as SourceRequest;
    const fence = row.fence + 1;
    await tx.sql("update data.asset_import set fence = $3, lease_until = $4 where tenant_id = $1 and asset_id = $2", [
      row.tenantId,
      assetId,
      fence,
      new Date(now.getTime() + LIMITS.assetImportLeaseMs),
    ]);
    return { assetId, tenantId: row.tenantId, fence, startedAt: row.createdAt, deadlineAt: row.deadlineAt, source };
  }, forJob(found.tenant_id));
}

/** Keeps the import for this process, locked until the transaction ends. Throws `StaleClaim` when it is not its own any more. */
export async function renewClaim(tx: Tx, claim: ImportClaim, now: Date): Promise<void> {
  const rows = await tx.sql(
    `update data.asset_import set lease_until = $4 where tenant_id = $1 and asset_id = $2 and fence = $3 returning 1`,
    [claim.tenantId, claim.assetId, claim.fence, new Date(now.getTime() + LIMITS.assetImportLeaseMs)],
  );
  if (rows.length === 0) throw new StaleClaim("import");
}

/** Ends the import as one. Throws `StaleClaim` when it is not this process's own any more. */
export async function endClaim(tx: Tx, claim: Pick<ImportClaim, "tenantId" | "assetId" | "fence">): Promise<void> {
  const rows = await tx.sql(
    "delete from data.asset_import where tenant_id = $1 and asset_id = $2 and fence = $3 returning 1",
    [claim.tenantId, claim.assetId, claim.fence],
  );
  if (rows.length === 0) throw new StaleClaim("import");
}
