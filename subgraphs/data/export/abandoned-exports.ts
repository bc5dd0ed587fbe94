import type { Database, Tx } from "../../../infra/db/database.ts";
import { eachStep } from "../../../infra/db/each-step.ts";
import { forJob } from "../../../infra/db/job-bounds.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import { teamsInTurn } from "../../../infra/db/teams-in-turn.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { runExport } from "../jobs.ts";
import { markFailed } from "./export.commands.ts";
import { QueryExport } from "./export.entity.ts";
import { ExportFailure, exportTimedOut } from "./export-failure.ts";

/** What came of a look at exports that no living process has. */
export interface AbandonedExports {
  failed: number;
  queuedAgain: number;
}

/**
 * Puts exports right that no living process has, at most `limit` of each kind: one whose process died, or whose time is
 * over, has failed; one that waits although the queue may have lost it is put into the queue again.
 */
export async function settleAbandonedExports(db: Database, now: Date, limit = 100): Promise<AbandonedExports> {
  const lost = await db.sql<{ id: string; tenantId: string }>(
    `select id, tenant_id as "tenantId" from data.query_export
      where ((state = 'running' and lease_until <= $1) or (state = 'pending' and deadline_at <= $1)) and cleaned_at is null
      order by ${teamsInTurn("tenant_id", "created_at")} limit $2`,
    [now, limit],
  );
  const done: AbandonedExports = { failed: 0, queuedAgain: 0 };
  const fail = async ({ id, tenantId }: (typeof lost)[number]) => {
    if (await db.command((tx) => failLost(tx, id, now), forJob(tenantId))) done.failed++;
  };
  await eachStep([
    ...lost.map((row) => () => fail(row)),
    async () => {
      done.queuedAgain = await queueAgain(db, now, limit);
    },
  ]);
  return done;
}

async function failLost(tx: Tx, id: string, now: Date): Promise<boolean> {
  const row = await tx.row(
    QueryExport,
    `where t.id = $1 and ((t.state = 'running' and t.lease_until <= $2) or (t.state = 'pending' and t.deadline_at <= $2))
     for update skip locked`,
    [id, now],
  );
  if (!row) return false; // its process reported meanwhile, or ended it
  await markFailed(tx, row, row.state === "pending" ? exportTimedOut() : died(), now);
  return true;
}

function died(): ExportFailure {
  return new ExportFailure("shutdown", "The process that ran the query ended before it was done. Export again.");
}

function queueAgain(db: Database, now: Date, limit: number): Promise<number> {
  return db.command(async (tx) => {
    const before = new Date(now.getTime() - LIMITS.exportQueuedMs);
    const rows = await tx.sql<{ id: string }>(
      `update data.query_export set queued_at = $1 where id in (
         select id from data.query_export
          where state = 'pending' and cleaned_at is null and queued_at <= $2 and deadline_at > $1
          order by created_at limit $3 for update skip locked) returning id`,
      [now, before, limit],
    );
    for (const { id } of rows) await enqueue(tx, runExport, { exportId: id }, now);
    return rows.length;
  });
}

/**
 * Forgets exports whose asset is forgotten. Looks at `limit` exports behind the id `after`; answers where to go on, "" for
 * the beginning, and how many went.
 */
export async function forgetExports(
  db: Database,
  { after, limit }: { after: string; limit: number },
): Promise<{ after: string; forgotten: number }> {
  const page = await db.sql<{ id: string }>("select id from data.query_export where id > $1 order by id limit $2", [
    after,
    limit,
  ]);
  const ids = page.map(({ id }) => id);
  const gone = await db.sql(
    `delete from data.query_export where id in (
       select e.id from data.query_export e where e.id = any($1) and e.state in ('ready', 'cleanup')
          and not exists (select 1 from data.asset a where a.id = e.asset_id) for update skip locked) returning 1`,
    [ids],
  );
  return { after: page.length === limit ? ids.at(-1)! : "", forgotten: gone.length };
}
