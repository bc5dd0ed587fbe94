import type { Database } from "../../../infra/db/database.ts";
import { eachStep } from "../../../infra/db/each-step.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { removalsDeadBefore } from "../../../infra/objects/claim-bytes.ts";
import type { ObjectStore } from "../../../infra/objects/object-store.ts";
import { removeMarked } from "../../../infra/objects/remove-marked.ts";
import { UNUSED } from "./asset-object.ts";
import { finishDeletions } from "./delete-asset.ts";

export interface CollectDeps {
  db: Database;
  /** The store of assets alone. */
  objects: ObjectStore;
  clock: Clock;
}

/** Rows of one kind that one round forgets. */
const FORGOTTEN_AT_ONCE = 5_000;

/**
 * Removes bytes that nothing refers to any more, at most `limit` objects: those of deleted assets and of uploads that
 * broke after their bytes were stored. Claim, act, settle: the claim marks the objects under their rows' locks, and who
 * wants to use bytes takes the same lock first, so either the use is seen here or the mark is seen there. Also finishes
 * deletions, and forgets dead uploads and assets that were deleted, or failed, 30 days ago. Answers how many objects went.
 */
export async function collectAssetBytes(deps: CollectDeps, limit = 100): Promise<number> {
  const now = deps.clock.now();
  let removed = 0;
  await eachStep([
    () => forget(deps.db, now),
    () => finishDeletions(deps, limit),
    async () => {
      removed = await removeGarbage(deps, now, limit);
    },
  ]);
  return removed;
}

async function removeGarbage({ db, objects, clock }: CollectDeps, now: Date, limit: number): Promise<number> {
  const names = await markGarbage(db, now, limit);
  const terms = { table: "data.asset_object", names, markedAt: now, failed: "free" } as const;
  const { removed, failures } = await removeMarked({ db, objects, clock }, terms);
  if (failures.length > 0) throw failures[0];
  return removed;
}

/** Of all teams, so what somebody holds is left for another round. */
async function forget(db: Database, now: Date): Promise<void> {
  const few = `limit ${FORGOTTEN_AT_ONCE} for update skip locked`;
  await db.sql(
    `delete from data.asset_upload where id = any(array(select id from data.asset_upload where seen_at < $1 ${few}))`,
    [new Date(now.getTime() - 5 * LIMITS.assetUploadSilenceMs)],
  );
  for (const over of ["state = 'deleted' and deleted_at < $1", FAILED_AND_EMPTY])
    await db.sql(`delete from data.asset where id = any(array(select id from data.asset where ${over} ${few}))`, [
      new Date(now.getTime() - LIMITS.deletedAssetMs),
    ]);
}

const FAILED_AND_EMPTY = "state = 'failed' and stored_bytes = 0 and created_at < $1";

/** Two statements: the second has a snapshot taken under the locks of the first, so it sees every claim before them. */
function markGarbage(db: Database, now: Date, limit: number): Promise<string[]> {
  return db.command(async (tx) => {
    const locked = await tx.sql<{ sha256: string }>(
      `select o.sha256 from data.asset_object o
        where (o.removing_since is null or o.removing_since < $1) and ${UNUSED}
        order by o.created_at limit $2 for update skip locked`,
      [removalsDeadBefore(now), limit],
    );
    const marked = await tx.sql<{ sha256: string }>(
      `update data.asset_object o set removing_since = $1 where o.sha256 = any($2) and ${UNUSED} returning o.sha256`,
      [now, locked.map((o) => o.sha256)],
    );
    return marked.map((o) => o.sha256);
  });
}
