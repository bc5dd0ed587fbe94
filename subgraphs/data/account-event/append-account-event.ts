import type { Tx } from "../../../infra/db/database.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import type { JsonValue } from "../../../infra/kernel/json-value.ts";
import { offerDelivery } from "../delivery/offer-delivery.ts";
import { dataTopics } from "../topics.ts";
import type { AccountEventType } from "./event-types.ts";

export interface NewAccountEvent {
  tenantId: string;
  type: AccountEventType;
  /** Wire spelling; ids under `asset_id`, `workload_id` and so on. No secrets and no URLs with a query. */
  payload: Record<string, JsonValue>;
  now: Date;
}

/**
 * Appends to the team's account stream, and to its webhook if the type goes there, within the caller's transaction.
 * Takes the lock of the team's stream until the commit: call it last.
 */
export async function appendAccountEvent(tx: Tx, { tenantId, type, payload, now }: NewAccountEvent): Promise<void> {
  const eventId = newId("event", now);
  await Promise.all([
    tx.sql(
      `with stream as (
         insert into data.account_stream as s (tenant_id, last_seq) values ($2, 1)
         on conflict (tenant_id) do update set last_seq = s.last_seq + 1 returning last_seq)
       insert into data.account_event (id, tenant_id, seq, type, payload, created_at)
       select $1, $2, stream.last_seq, $3, $4, $5 from stream`,
      [eventId, tenantId, type, JSON.stringify(payload), now],
    ),
    offerDelivery(tx, { tenantId, eventId, type, payload, now }),
  ]);
  tx.wake(dataTopics.accountEvents(tenantId));
}
