import type { Database } from "../../../infra/db/database.ts";
import { removalsDeadBefore } from "../../../infra/objects/claim-bytes.ts";
import { type RemovalDeps, type Removed, removeMarked } from "../../../infra/objects/remove-marked.ts";

/**
 * What refers to bytes in the store of results; each is a condition on the object `o`. Whoever adds a table whose rows
 * name such bytes adds its condition here, and an index that answers it.
 */
export const RESULT_REFERENCES = [
  "exists (select 1 from compute.output t where t.sha256 = o.sha256 and t.removed_at is null)",
  "exists (select 1 from compute.placement t where t.log_sha256 = o.sha256 and t.log_removed_at is null)",
  `exists (select 1 from compute.manifest t
     where t.manifest @> jsonb_build_object('files', jsonb_build_array(jsonb_build_object('sha256', o.sha256))))`,
  `exists (select 1 from compute.manifest t
     where t.manifest @> jsonb_build_object('outputs', jsonb_build_array(jsonb_build_object('sha256', o.sha256))))`,
] as const;

/** Nothing refers to the object `o`. */
export const UNUSED_RESULT = RESULT_REFERENCES.map((reference) => `not ${reference}`).join(" and ");

export interface Collected extends Removed {
  /** Where the next call goes on; null once all objects were looked at. */
  after: string | null;
}

/**
 * Looks at the next `limit` objects of the store of results behind `after` and removes those that nothing refers to and
 * that were stored more than `unusedMs` ago. Claim, act, settle: the claim marks them under their rows' locks, and who
 * wants to refer to bytes holds the row first, so either the reference is seen here or the mark is seen there.
 */
export async function collectResultBytes(
  { db, objects, clock }: RemovalDeps,
  { after, limit, unusedMs }: { after: string | null; limit: number; unusedMs: number },
): Promise<Collected> {
  const now = clock.now();
  const page = await db.sql<{ sha256: string }>(
    "select sha256 from compute.result_object where $1::text is null or sha256 > $1 order by sha256 limit $2",
    [after, limit],
  );
  const names = page.map((row) => row.sha256);
  const marked = await markGarbage(db, names, { now, unusedMs });
  // A log may still be referred to that was stored long ago, and is not stored again.
  const terms = { table: "compute.result_object", names: marked, markedAt: now, failed: "marked" } as const;
  const ends = await removeMarked({ db, objects, clock }, terms);
  return { ...ends, after: names.length < limit ? null : names.at(-1)! };
}

/** Two statements: the second has a snapshot taken under the locks of the first, so it sees every hold before them. */
function markGarbage(
  db: Database,
  names: readonly string[],
  { now, unusedMs }: { now: Date; unusedMs: number },
): Promise<string[]> {
  return db.command(async (tx) => {
    const locked = await tx.sql<{ sha256: string }>(
      `select o.sha256 from compute.result_object o
        where o.sha256 = any($1) and o.stored_at < $2 and (o.removing_since is null or o.removing_since < $3) and ${UNUSED_RESULT}
        order by o.sha256 for update skip locked`,
      [names, new Date(now.getTime() - unusedMs), removalsDeadBefore(now)],
    );
    const marked = await tx.sql<{ sha256: string }>(
      `update compute.result_object o set removing_since = $1 where o.sha256 = any($2) and ${UNUSED_RESULT} returning o.sha256`,
      [now, locked.map((o) => o.sha256)],
    );
    // In an order that no plan of the database decides.
    return marked.map((o) => o.sha256).sort();
  });
}
