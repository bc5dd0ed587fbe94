import type { Database } from "./database.ts";

/** Tables of keyed objects by the beginning of their ids, such as `wl` → `compute.workload`. */
export type KeyedTables = Readonly<Record<string, `${string}.${string}`>>;

export interface SweptKeys {
  /** Keys that went. */
  removed: number;
  /** Where the next call goes on; null once all keys were looked at. */
  after: string | null;
}

/**
 * Looks at the next `limit` keys behind `after` and forgets those whose object is there no more. A key of an object that
 * `tables` does not know is kept: forgetting it could let a request run twice.
 */
export async function sweepIdempotencyKeys(
  db: Database,
  tables: KeyedTables,
  { after, limit }: { after: string | null; limit: number },
): Promise<SweptKeys> {
  const page = await db.sql<{ id: string }>(
    "select id from infra.idempotency_key where $1::text is null or id > $1 order by id limit $2",
    [after, limit],
  );
  const ids = page.map((row) => row.id);
  let removed = 0;
  for (const [prefix, table] of Object.entries(tables)) {
    const gone = await db.sql(
      `delete from infra.idempotency_key k where k.id = any($1) and split_part(k.object_id, '_', 1) = $2
         and not exists (select 1 from ${table} t where t.id = k.object_id) returning 1`,
      [ids, prefix],
    );
    removed += gone.length;
  }
  return { removed, after: ids.length < limit ? null : ids.at(-1)! };
}
