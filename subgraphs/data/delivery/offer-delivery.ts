import type { Tx } from "../../../infra/db/database.ts";
import type { OfferedEvent } from "../../../infra/db/offered-event.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { isDelivered } from "../account-event/event-types.ts";
import { dataTopics } from "../topics.ts";
import { deliveryBody } from "./delivery-body.ts";

/**
 * Records that an event is to be sent, in the transaction that made it happen, if its type is one that is sent and the
 * team has a webhook that is on. One statement, which takes no lock.
 */
export async function offerDelivery(tx: Tx, event: OfferedEvent): Promise<void> {
  if (!isDelivered(event.type)) return;
  const { tenantId, eventId, type, now } = event;
  const id = newId("delivery", now);
  const made = await tx.sql(
    `insert into data.webhook_delivery (id, tenant_id, event_id, event_type, body, state, attempts, tries, attempt_log, due_at,
       retries_until, created_at)
     select $1, w.tenant_id, $3, $4, $5, 'pending', 0, 0, '[]', $6, $7, $6
     from data.webhook w where w.tenant_id = $2 and w.disabled_at is null returning id`,
    [id, tenantId, eventId, type, deliveryBody(id, event), now, new Date(now.getTime() + LIMITS.webhookRetriesMs)],
  );
  if (made.length > 0) tx.wake(dataTopics.deliveries);
}
