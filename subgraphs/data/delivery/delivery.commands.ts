import type { Database, Queryer } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { dataTopics } from "../topics.ts";
import { getWebhook } from "../webhook/webhook.commands.ts";
import { WEBHOOK } from "../webhook/webhook.refusals.ts";
import { WebhookDelivery } from "./delivery.entity.ts";

export interface DeliveryListing {
  tenantId: string;
  state: WebhookDelivery["state"] | null;
  /** Milliseconds and id of the last one of the page before. */
  after: readonly (string | number)[] | null;
  limit: number;
}

/** A team's deliveries, newest first. */
export function listDeliveries(
  q: Queryer,
  { tenantId, state, after, limit }: DeliveryListing,
): Promise<WebhookDelivery[]> {
  const [atMs, id] = after ?? [null, null];
  if (after && (typeof atMs !== "number" || typeof id !== "string"))
    throw new Refused(COMMON.invalid_cursor, { field: "/after" });
  return q.rows(
    WebhookDelivery,
    `where t.tenant_id = $1 and ($2::text is null or t.state = $2)
       and ($3::timestamptz is null or (t.created_at, t.id) < ($3, $4))
     order by t.created_at desc, t.id desc limit $5`,
    [tenantId, state, atMs === null ? null : new Date(atMs as number), id, limit],
  );
}

/**
 * Sends an event again, at once and, if need be, for another 24 hours: the same delivery with the same bytes. One that is
 * being sent right now is left as it is.
 */
export function redeliver(db: Database, actor: Actor, id: string, now: Date): Promise<WebhookDelivery> {
  return db.command(async (tx) => {
    const find = () => tx.row(WebhookDelivery, "where t.tenant_id = $1 and t.id = $2 for update", [actor.tenantId, id]);
    const delivery = isId("delivery", id) ? await find() : null;
    if (!delivery) throw new Refused(COMMON.not_found, { field: "/id" });
    if (delivery.body === null) throw new Refused(WEBHOOK.delivery_not_repeatable, { field: "/id" });
    if ((await getWebhook(tx, actor.tenantId)).disabledAt) throw new Refused(WEBHOOK.webhook_disabled);
    if (delivery.claimedUntil && delivery.claimedUntil > now) return delivery;
    await tx.sql(
      `update data.webhook_delivery set state = 'pending', tries = 0, due_at = $3, retries_until = $4, ended_at = null
       where tenant_id = $1 and id = $2`,
      [actor.tenantId, id, now, new Date(now.getTime() + LIMITS.webhookRetriesMs)],
    );
    tx.wake(dataTopics.deliveries);
    return (await find())!;
  });
}
