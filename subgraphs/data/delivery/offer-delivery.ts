import type { Tx } from "../../../infra/db/database.ts";
import type { OfferedEvent } from "../../../infra/db/offered-event.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { isDelivered } from "../account-event/event-types.ts";
import { dataTopics } from "../topics.ts";
import { deliveryBody } from "./delivery-body.ts";

/**
 * Records that events are to be sent, in the transaction that made them happen: those whose type is one that is sent and
 * whose team has a webhook that is on. One statement, which takes no lock.
 */
export async function offerDeliveries(tx: Tx, events: readonly OfferedEvent[]): Promise<void> {
  const offered = events.filter(({ type }) => isDelivered(type)).map(deliveryRow);
  if (offered.length === 0) return;
  const made = await tx.sql(
    `insert into data.webhook_delivery (id, tenant_id, event_id, event_type, body, state, attempts, tries, attempt_log, due_at,
       retries_until, created_at)
     select d.id, w.tenant_id, d.event_id, d.event_type, d.body, 'pending', 0, 0, '[]', d.now, d.retries_until, d.now
     from jsonb_to_recordset($1::jsonb) as d(id text, tenant_id text, event_id text, event_type text, body text,
       retries_until timestamptz, now timestamptz)
     join data.webhook w on w.tenant_id = d.tenant_id where w.disabled_at is null returning id`,
    [JSON.stringify(offered)],
  );
  if (made.length > 0) tx.wake(dataTopics.deliveries);
}

function deliveryRow(event: OfferedEvent) {
  const { tenantId, eventId, type, now } = event;
  const id = newId("delivery", now);
  const retriesUntil = new Date(now.getTime() + LIMITS.webhookRetriesMs);
  return {
    ...{ id, tenant_id: tenantId, event_id: eventId, event_type: type, body: deliveryBody(id, event) },
    ...{ retries_until: retriesUntil, now },
  };
}
