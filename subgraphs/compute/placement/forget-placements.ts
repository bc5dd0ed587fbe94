import type { Database } from "../../../infra/db/database.ts";

/**
 * Forgets where workloads ran, `keptMs` after they ended, for at most `limit` workloads whose results are gone already.
 * What was paid stays in the ledger, what happened in the events. Answers how many placements went.
 */
export function forgetPlacements(
  db: Database,
  { now, keptMs, limit }: { now: Date; keptMs: number; limit: number },
): Promise<number> {
  return db.command(async (tx) => {
    const due = await tx.sql<{ id: string }>(
      `update compute.workload set placements_forgotten_at = $1 where id in (
         select id from compute.workload
          where terminal_at < $2 and results_removed_at is not null and placements_forgotten_at is null
          order by terminal_at limit $3 for update skip locked) returning id`,
      [now, new Date(now.getTime() - keptMs), limit],
    );
    const ids = due.map((row) => row.id);
    await tx.sql("delete from compute.attempt where workload_id = any($1)", [ids]);
    return (await tx.sql("delete from compute.placement where workload_id = any($1) returning 1", [ids])).length;
  });
}
