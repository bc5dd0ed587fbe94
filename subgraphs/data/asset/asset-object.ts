import type { Database } from "../../../infra/db/database.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { removalsDeadBefore } from "../../../infra/objects/claim-bytes.ts";
import type { ObjectStore } from "../../../infra/objects/object-store.ts";
import { ASSET } from "./asset.refusals.ts";

/** Whether nothing refers to the object `o`. An asset that is being deleted has given its bytes up already. */
export const UNUSED = `not exists (select 1 from data.asset a where a.sha256 = o.sha256 and a.state not in ('deleting', 'deleted'))
                and not exists (select 1 from data.asset_upload u where u.sha256 = o.sha256)`;

/**
 * Removes an object that nothing refers to any more; leaves one that something does, or that another process is removing.
 * Who wants to use bytes takes the same row's lock first, so either the use is seen here or the mark is seen there.
 *
 * @throws `object_store_unavailable` when the store refuses; the object can then be used or removed again
 */
export async function removeIfUnused(
  { db, objects, clock }: { db: Database; objects: ObjectStore; clock: Clock },
  sha256: string,
): Promise<void> {
  const now = clock.now();
  const marked = await db.command(async (tx) => {
    // Two statements: the second has a snapshot taken under the lock of the first, so it sees every claim before it.
    await tx.sql("select 1 from data.asset_object where sha256 = $1 for update", [sha256]);
    return tx.sql(
      `update data.asset_object o set removing_since = $2
        where o.sha256 = $1 and (o.removing_since is null or o.removing_since < $3) and ${UNUSED} returning 1`,
      [sha256, now, removalsDeadBefore(now)],
    );
  });
  if (marked.length === 0) return;
  try {
    await objects.remove(sha256);
  } catch (cause) {
    await db.sql("update data.asset_object set removing_since = null where sha256 = $1 and removing_since = $2", [
      sha256,
      now,
    ]);
    throw Object.assign(new Refused(ASSET.object_store_unavailable), { cause });
  }
  await db.sql("delete from data.asset_object where sha256 = $1 and removing_since = $2", [sha256, now]);
}
