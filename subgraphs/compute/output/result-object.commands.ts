import type { Database, Tx } from "../../../infra/db/database.ts";
import type { ObjectStore, StoredObject } from "../../../infra/objects/object-store.ts";

export interface ResultDeps {
  db: Database;
  /** The store of results: outputs and logs. */
  objects: Pick<ObjectStore, "put" | "has">;
  now(): Date;
}

/** Equal bytes are being removed just now. Storing them again a little later works. */
export class ResultBeingRemoved extends Error {
  override readonly name = "ResultBeingRemoved";
}

/**
 * Stores bytes that an output or a log is about to refer to, and keeps them from being removed for a day.
 *
 * @throws ResultBeingRemoved when an equal object is just going; and what `ObjectStore.put` throws
 */
export async function storeResult(
  { db, objects, now }: ResultDeps,
  source: AsyncIterable<Uint8Array>,
  limits: { maxBytes: number },
): Promise<StoredObject> {
  const stored = await objects.put(source, limits);
  const claimed = await db.sql(
    `insert into compute.result_object (sha256, bytes, stored_at) values ($1, $2, $3)
     on conflict (sha256) do update set stored_at = greatest(result_object.stored_at, excluded.stored_at)
       where result_object.removing_since is null returning sha256`,
    [stored.sha256, stored.bytes, now()],
  );
  // They may have been removed between their storing and the claim; from here on they stay.
  if (claimed.length === 0 || !(await objects.has(stored.sha256))) throw new ResultBeingRemoved();
  return stored;
}

/** Takes hold of stored bytes for the reference that this transaction writes; false when they are being removed. */
export async function holdResult(tx: Tx, { sha256, bytes }: StoredObject, now: Date): Promise<boolean> {
  // Bytes of a release that did not claim them have no row yet.
  await tx.sql(
    "insert into compute.result_object (sha256, bytes, stored_at) values ($1, $2, $3) on conflict (sha256) do nothing",
    [sha256, bytes, now],
  );
  const held = await tx.sql(
    "select 1 from compute.result_object where sha256 = $1 and removing_since is null for share",
    [sha256],
  );
  return held.length > 0;
}
