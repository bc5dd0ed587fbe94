import type { Database } from "../../../infra/db/database.ts";

/**
 * Ends the time of what workloads left, `keptMs` after they ended, for at most `limit` workloads: outputs stay listed but
 * are gone, logs and manifests are there no more. The bytes go once nothing refers to them. Answers how many workloads
 * it was; doing it again changes nothing.
 */
export function expireResults(
  db: Database,
  { now, keptMs, limit }: { now: Date; keptMs: number; limit: number },
): Promise<number> {
  return db.command(async (tx) => {
    const due = await tx.sql<{ id: string }>(
      `update compute.workload set results_removed_at = $1 where id in (
         select id from compute.workload where terminal_at < $2 and settled_at is not null and results_removed_at is null
         order by terminal_at limit $3 for update skip locked) returning id`,
      [now, new Date(now.getTime() - keptMs), limit],
    );
    if (due.length === 0) return 0;
    const ids = due.map((row) => row.id);
    await tx.sql("update compute.output set removed_at = $2 where workload_id = any($1) and removed_at is null", [
      ids,
      now,
    ]);
    await tx.sql("update compute.placement set log_removed_at = $2 where workload_id = any($1)", [ids, now]);
    await tx.sql("delete from compute.manifest where workload_id = any($1)", [ids]);
    await tx.sql("delete from compute.log_chunk where workload_id = any($1)", [ids]);
    return ids.length;
  });
}
