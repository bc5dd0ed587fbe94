import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { LoadDeps } from "./load.commands.ts";

/** Loads in the order of their ids, which is that of their making. */
export interface LoadPage {
  /** Goes on behind this id; null begins with the oldest load. */
  after: string | null;
  limit: number;
  now: Date;
}

/**
 * Forgets loads of workloads that are forgotten themselves: nothing can ask for them again, because the output went
 * before. What was loaded stays in its table, and the row about the run beside it, which alone fences later writes there.
 * Looks at `limit` loads; answers where to go on, null for the beginning, and how many went.
 */
export async function forgetLoads(
  { db, results }: LoadDeps,
  { after, limit, now }: LoadPage,
): Promise<{ after: string | null; forgotten: number }> {
  const page = await db.sql<{ id: string; workloadId: string; createdAt: Date }>(
    `select id, workload_id as "workloadId", created_at as "createdAt" from data.sink_load
      where $1::text is null or id > $1 order by id limit $2`,
    [after, limit],
  );
  const madeBefore = new Date(now.getTime() - LIMITS.placementHistoryMs);
  const old = page.filter(({ createdAt }) => createdAt < madeBefore);
  const workloadIds = await results.forgotten(db, [...new Set(old.map(({ workloadId }) => workloadId))]);
  const gone = await db.sql(
    `delete from data.sink_load where id in (
       select id from data.sink_load where id = any($1) and workload_id = any($2) and state in ('loaded', 'failed')
          and run_state not in ('open', 'due') for update skip locked) returning 1`,
    [old.map(({ id }) => id), workloadIds],
  );
  const more = page.length === limit && old.length === limit;
  return { after: more ? page.at(-1)!.id : null, forgotten: gone.length };
}
