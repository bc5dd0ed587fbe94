import type { Database } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";

/** Forgets deliveries that are over and older than 30 days, at most `limit` of them. Answers how many went. */
export async function sweepDeliveries(db: Database, now: Date, limit = 5_000): Promise<number> {
  const gone = await db.sql(
    `delete from data.webhook_delivery where id = any(array(
       select id from data.webhook_delivery where state <> 'pending' and created_at < $1 order by created_at limit $2
       for update skip locked))
     returning 1`,
    [new Date(now.getTime() - LIMITS.webhookDeliveryKeptMs), limit],
  );
  return gone.length;
}
