import type { Database } from "../../../infra/db/database.ts";
import { forJob } from "../../../infra/db/job-bounds.ts";
import { teamsInTurn } from "../../../infra/db/teams-in-turn.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import type { ObjectStore } from "../../../infra/objects/object-store.ts";
import { removeIfUnused } from "../asset/asset-object.ts";
import { QueryExport } from "./export.entity.ts";
import { touchAsset } from "./export-claim.ts";

export interface CleaningDeps {
  db: Database;
  /** The store of assets alone. */
  objects: ObjectStore;
  clock: Clock;
}

/** Failed exports of which something may be left, oldest first of each team. */
export function uncleanedExports(db: Database, limit: number): Promise<QueryExport[]> {
  return db.rows(
    QueryExport,
    `where t.state = 'cleanup' and t.cleaned_at is null order by ${teamsInTurn("t.tenant_id", "t.created_at")} limit $1`,
    [limit],
  );
}

/**
 * Removes what a failed export left in the store; from then on it counts for nothing and is not shown any more. Repeating
 * it changes nothing. Throws when the store refuses: the reservation stays, and the next round tries again.
 */
export async function cleanExport(deps: CleaningDeps, row: QueryExport): Promise<void> {
  if (row.objectSha256) await removeIfUnused(deps, row.objectSha256);
  await deps.db.command(async (tx) => {
    const cleaned = await tx.sql(
      `update data.query_export set cleaned_at = $3, object_sha256 = null
        where tenant_id = $1 and id = $2 and state = 'cleanup' and cleaned_at is null returning 1`,
      [row.tenantId, row.id, deps.clock.now()],
    );
    if (cleaned.length === 0) return;
    await tx.sql("update data.asset set stored_bytes = 0 where tenant_id = $1 and id = $2 and state = 'failed'", [
      row.tenantId,
      row.assetId,
    ]);
    await touchAsset(tx, row);
  }, forJob(row.tenantId));
}
