import type { Database, Tx } from "../../../infra/db/database.ts";
import { eachStep } from "../../../infra/db/each-step.ts";
import { forJob } from "../../../infra/db/job-bounds.ts";
import { enqueue, enqueueAll } from "../../../infra/db/outbox.ts";
import { teamsInTurn } from "../../../infra/db/teams-in-turn.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { releaseConnections } from "../connection/connection-uses.ts";
import { loadOutput, recordRun } from "../jobs.ts";
import { type LoadDeps, markFailed, putBack } from "./load.commands.ts";
import { type RunState, SinkLoad } from "./load.entity.ts";
import { LoadFailure } from "./load-failure.ts";

/**
 * Puts loads right that no living process has, at most `limit` of each kind: one whose process died waits again, until
 * it has cost too many processes; whatever waits although the queue may have lost it is put into the queue again.
 */
export async function settleAbandonedLoads(deps: LoadDeps, now: Date, limit = 100): Promise<void> {
  const { db } = deps;
  const lost = await db.sql<{ id: string; tenantId: string; workloadId: string }>(
    `select id, tenant_id as "tenantId", workload_id as "workloadId" from data.sink_load
      where state = 'loading' and lease_until <= $1 order by ${teamsInTurn("tenant_id", "created_at")} limit $2`,
    [now, limit],
  );
  const take = (load: (typeof lost)[number]) =>
    db.command((tx) => takeFromDead(tx, load, deps, now), forJob(load.tenantId));
  await eachStep([
    ...lost.map((load) => () => take(load)),
    () => queueAgain(db, now, limit),
    () => sendFiguresAgain(db, now, limit),
  ]);
}

async function takeFromDead(
  tx: Tx,
  { id, tenantId, workloadId }: { id: string; tenantId: string; workloadId: string },
  { results }: LoadDeps,
  now: Date,
): Promise<void> {
  await results.lock(tx, { tenantId, workloadId });
  const row = await tx.row(
    SinkLoad,
    "where t.id = $1 and t.state = 'loading' and t.lease_until <= $2 for update skip locked",
    [id, now],
  );
  if (!row) return; // its process reported meanwhile, or ended it
  if (row.attempts < LIMITS.loadAttempts) return putBack(tx, row, now);
  const failure = new LoadFailure("internal", `${row.attempts} processes died of it.`);
  await markFailed(tx, row, { failure, results, now });
}

function queueAgain(db: Database, now: Date, limit: number): Promise<void> {
  return db.command(async (tx) => {
    const rows = await tx.sql<{ id: string }>(
      `update data.sink_load set queued_at = $1 where id in (
         select id from data.sink_load where state = 'pending' and queued_at <= $2
          order by created_at limit $3 for update skip locked) returning id`,
      [now, new Date(now.getTime() - LIMITS.loadQueuedMs), limit],
    );
    const jobs = rows.map(({ id }) => ({ payload: { loadId: id }, dueAt: now }));
    await enqueueAll(tx, loadOutput, jobs, now);
  });
}

/** Loads whose figures were not written `$2` milliseconds, doubled with each try, after they were last sent for. */
const FIGURES_LATE = `run_state = 'due' and state = 'loaded'
  and queued_at + $2 * interval '1 millisecond' * (1 << least(attempts, 20)) <= $1`;

async function sendFiguresAgain(db: Database, now: Date, limit: number): Promise<void> {
  const late = await db.sql<{ id: string; tenantId: string }>(
    `select id, tenant_id as "tenantId" from data.sink_load where ${FIGURES_LATE}
      order by ${teamsInTurn("tenant_id", "queued_at, id")} limit $3`,
    [now, LIMITS.loadQueuedMs, limit],
  );
  const send = ({ id, tenantId }: (typeof late)[number]) =>
    db.command((tx) => sendAgain(tx, id, now), forJob(tenantId));
  await eachStep(late.map((load) => () => send(load)));
}

/** After the last try the credential is let go and the figures stay as they were. */
async function sendAgain(tx: Tx, id: string, now: Date): Promise<void> {
  const [load] = await tx.sql<{ run_state: RunState }>(
    `update data.sink_load set queued_at = $1, attempts = attempts + 1,
       run_state = case when attempts + 1 >= $4 then 'lost' else 'due' end
      where id = $3 and ${FIGURES_LATE} returning run_state`,
    [now, LIMITS.loadQueuedMs, id, LIMITS.loadRunAttempts],
  );
  if (load?.run_state === "due") await enqueue(tx, recordRun, { loadId: id }, now);
  if (load?.run_state === "lost") await releaseConnections(tx, id);
}
