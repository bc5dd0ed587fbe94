import type { Database } from "./database.ts";

/**
 * Removes rows of jobs that no process knows any more and that were due before `dueBefore`, at most `limit`: what a
 * removed job left behind. Rows of `knownJobs` stay, however late they are. Answers how many of each job went.
 */
export async function sweepOutbox(
  db: Database,
  { knownJobs, dueBefore, limit }: { knownJobs: readonly string[]; dueBefore: Date; limit: number },
): Promise<Readonly<Record<string, number>>> {
  const rows = await db.sql<{ job: string; gone: number }>(
    `with gone as (
       delete from infra.outbox where id in (
         select id from infra.outbox where due_at < $1 and job <> all($2) order by due_at limit $3 for update skip locked)
       returning job)
     select job, count(*)::int as gone from gone group by job`,
    [dueBefore, knownJobs, limit],
  );
  return Object.fromEntries(rows.map(({ job, gone }) => [job, gone]));
}
