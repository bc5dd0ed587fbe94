import type { Database, Tx } from "../../../infra/db/database.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { claimWhenFree, removalsDeadBefore } from "../../../infra/objects/claim-bytes.ts";
import type { ObjectStore, StoredObject } from "../../../infra/objects/object-store.ts";

export interface ResultDeps {
  db: Database;
  /** The store of results: outputs and logs. */
  objects: Pick<ObjectStore, "put">;
  clock: Clock;
}

/** Equal bytes were being removed for longer than anybody waits. Storing them again a little later works. */
export class ResultBeingRemoved extends Error {
  override readonly name = "ResultBeingRemoved";
}

/**
 * Stores bytes that an output or a log is about to refer to, and keeps them from being removed for a day. Waits while
 * equal ones are just being removed.
 *
 * @throws ResultBeingRemoved when that takes beyond all measure; and what `ObjectStore.put` throws
 */
export async function storeResult(
  { db, objects, clock }: ResultDeps,
  source: AsyncIterable<Uint8Array>,
  limits: { maxBytes: number },
): Promise<StoredObject> {
  return objects.put(source, {
    ...limits,
    claim: async (object) => {
      if (!(await claimWhenFree(clock, () => keep(db, object, clock.now())))) throw new ResultBeingRemoved();
    },
  });
}

/** From here on for a day nobody begins to remove them; false while somebody does. A removal that died is over. */
async function keep(db: Database, { sha256, bytes }: StoredObject, now: Date): Promise<boolean> {
  const kept = await db.sql(
    `insert into compute.result_object (sha256, bytes, stored_at) values ($1, $2, $3)
     on conflict (sha256) do update set removing_since = null,
         stored_at = greatest(result_object.stored_at, excluded.stored_at)
       where result_object.removing_since is null or result_object.removing_since <= $4 returning sha256`,
    [sha256, bytes, now, removalsDeadBefore(now)],
  );
  return kept.length > 0;
}

/**
 * Takes hold of stored bytes for the reference that this transaction writes. False when they are being removed, or are
 * gone: whoever stored them was away for longer than they were kept for it.
 */
export async function holdResult(tx: Tx, sha256: string): Promise<boolean> {
  const held = await tx.sql(
    "select 1 from compute.result_object where sha256 = $1 and removing_since is null for share",
    [sha256],
  );
  return held.length > 0;
}
