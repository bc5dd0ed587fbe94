import type { Database } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";

/** Nothing can ask for the connection `c` any more: who uses it, what an asset shows of it, what may be loaded again. */
const UNREFERRED = `not exists (select 1 from data.connection_use u where u.connection_id = c.id)
  and not exists (select 1 from data.query_export e where e.connection_id = c.id)
  and not exists (select 1 from data.sink_load l where l.connection_id = c.id)`;

/**
 * Forgets connections that were deleted 30 days ago and that nothing refers to, at most `limit`. Answers how many went.
 * Two statements: the second has a snapshot taken under the locks of the first, so it sees every use before them.
 */
export function sweepConnections(db: Database, now: Date, limit = 500): Promise<number> {
  return db.command(async (tx) => {
    const locked = await tx.sql<{ id: string }>(
      `select c.id from data.connection c where c.deleted_at < $1 and ${UNREFERRED}
        order by c.deleted_at limit $2 for update skip locked`,
      [new Date(now.getTime() - LIMITS.deletedConnectionMs), limit],
    );
    const gone = await tx.sql(`delete from data.connection c where c.id = any($1) and ${UNREFERRED} returning 1`, [
      locked.map(({ id }) => id),
    ]);
    return gone.length;
  });
}
