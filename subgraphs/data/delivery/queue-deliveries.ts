import type { Database, Queryer } from "../../../infra/db/database.ts";
import { forJob } from "../../../infra/db/job-bounds.ts";
import { enqueueAll } from "../../../infra/db/outbox.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { deliverWebhook } from "../jobs.ts";

/** A queued delivery that no worker has begun after this long is queued again: its job was lost. */
export const QUEUED_MS = 60_000;

/** A team with something to send. */
export interface PendingTeam {
  tenantId: string;
  /** Its webhook exists and is on. */
  on: boolean;
  /** Something is due now and nobody has it in hand. */
  due: boolean;
}

/** Teams with pending deliveries after `after`, in order: one step through the index for each, however much is pending. */
export async function pendingTeams(q: Queryer, now: Date, after: string, limit: number): Promise<PendingTeam[]> {
  return q.sql<PendingTeam>(
    `with recursive team as (
       (select tenant_id from data.webhook_delivery where state = 'pending' and tenant_id > $2 order by tenant_id limit 1)
       union all
       select (select d.tenant_id from data.webhook_delivery d
               where d.state = 'pending' and d.tenant_id > team.tenant_id order by d.tenant_id limit 1)
       from team where team.tenant_id is not null)
     select team.tenant_id as "tenantId",
       exists (select 1 from data.webhook w where w.tenant_id = team.tenant_id and w.disabled_at is null) as on,
       exists (select 1 from data.webhook_delivery d where d.tenant_id = team.tenant_id and d.state = 'pending' and d.due_at <= $1
               and coalesce(d.queued_until, $1) <= $1 and coalesce(d.claimed_until, $1) <= $1) as due
     from team where team.tenant_id is not null limit $3`,
    [now, after, limit],
  );
}

/**
 * Queues what is due of a team, the oldest first, up to as many as it may have under way: a receiver that hangs holds up
 * only its own team, and one that fails is tried by a single delivery at a time. Answers how many were queued.
 */
export function queueDeliveries(db: Database, tenantId: string, now: Date): Promise<number> {
  return db.command(async (tx) => {
    await tx.sql("select pg_advisory_xact_lock(hashtextextended('data.delivery/' || $1, 0))", [tenantId]);
    const room = await roomOf(tx, tenantId, now);
    if (room <= 0) return 0;
    const queued = await tx.sql<{ id: string }>(
      `update data.webhook_delivery set queued_until = $2 where id = any(array(
         select id from data.webhook_delivery
         where tenant_id = $1 and state = 'pending' and due_at <= $3
           and coalesce(queued_until, $3) <= $3 and coalesce(claimed_until, $3) <= $3
         order by due_at, id limit $4 for update skip locked))
       returning id`,
      [tenantId, new Date(now.getTime() + QUEUED_MS), now, room],
    );
    const ids = queued.map(({ id }) => id).sort(); // an update returns its rows in any order
    const jobs = ids.map((deliveryId) => ({ payload: { deliveryId }, dueAt: now }));
    await enqueueAll(tx, deliverWebhook, jobs, now);
    return queued.length;
  }, forJob(tenantId));
}

/** How many more deliveries of the team may be under way. */
async function roomOf(q: Queryer, tenantId: string, now: Date): Promise<number> {
  const [row] = await q.sql<{ failing: boolean; busy: bigint }>(
    `select w.failures > 0 as failing, (
       select count(*) from data.webhook_delivery d
       where d.tenant_id = w.tenant_id and d.state = 'pending' and (d.queued_until is not null or d.claimed_until is not null)
         and (d.queued_until > $2 or d.claimed_until > $2)) as busy
     from data.webhook w where w.tenant_id = $1 and w.disabled_at is null`,
    [tenantId, now],
  );
  if (!row) return 0;
  const most = row.failing ? LIMITS.webhookDeliveriesAtOnceFailing : LIMITS.webhookDeliveriesAtOnce;
  return most - Number(row.busy);
}
