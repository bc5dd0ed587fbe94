import type { Database } from "../../infra/db/database.ts";
import type { ListedObject, ObjectStore } from "../../infra/objects/object-store.ts";

/** A store and the statement that gives its objects rows: arrays of names, sizes and times. */
export interface AdoptedStore {
  objects: Pick<ObjectStore, "list">;
  insert: string;
}

/** Rows of the store of assets. */
export const ADOPT_ASSET_BYTES = `insert into data.asset_object (sha256, bytes, created_at)
  select * from unnest($1::text[], $2::bigint[], $3::timestamptz[]) on conflict (sha256) do nothing returning sha256`;

/** Rows of the store of results. */
export const ADOPT_RESULT_BYTES = `insert into compute.result_object (sha256, bytes, stored_at)
  select * from unnest($1::text[], $2::bigint[], $3::timestamptz[]) on conflict (sha256) do nothing returning sha256`;

export interface Adopted {
  /** Objects that had no row. */
  adopted: number;
  /** Where the next call goes on; null once all objects were looked at. */
  after: string | null;
}

/**
 * Gives a row to stored bytes that have none, such as those of a process that died between storing and claiming them:
 * at most `limit` objects behind `after`. The row is what lets the collection of unused bytes decide about them, under
 * its lock. What was stored within the last `unusedMs` is left alone: its claim may be on its way.
 */
export async function adoptUnknownObjects(
  db: Database,
  { objects, insert }: AdoptedStore,
  { after, limit, now, unusedMs }: { after: string | null; limit: number; now: Date; unusedMs: number },
): Promise<Adopted> {
  const listed = await objects.list({ after, limit });
  const settledBefore = now.getTime() - unusedMs;
  const old = listed.filter((object) => object.storedAt.getTime() < settledBefore);
  const adopted = old.length === 0 ? [] : await db.sql(insert, columns(old));
  return { adopted: adopted.length, after: listed.length < limit ? null : listed.at(-1)!.sha256 };
}

function columns(objects: readonly ListedObject[]): [string[], number[], Date[]] {
  return [objects.map((o) => o.sha256), objects.map((o) => o.bytes), objects.map((o) => o.storedAt)];
}
