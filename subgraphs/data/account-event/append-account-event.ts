import type { Tx } from "../../../infra/db/database.ts";
import type { OfferedEvent } from "../../../infra/db/offered-event.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import type { JsonValue } from "../../../infra/kernel/json-value.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { offerDeliveries } from "../delivery/offer-delivery.ts";
import { dataTopics } from "../topics.ts";
import { type AccountEventType, isAccountEvent, restOf } from "./event-types.ts";

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
export function appendAccountEvent(tx: Tx, event: NewAccountEvent): Promise<void> {
  return append(tx, { ...event, eventId: newId("event", event.now) });
}

/** What other domains offer: an account event is appended to its stream, any other has been recorded and is only sent. */
export async function takeOfferedEvents(tx: Tx, events: readonly OfferedEvent[]): Promise<void> {
  for (const event of events) {
    const { type, subject, payload } = event;
    if (isAccountEvent(type)) await append(tx, { ...event, type, payload: { ...subject, ...payload } });
  }
  await offerDeliveries(
    tx,
    events.filter(({ type }) => !isAccountEvent(type)),
  );
}

async function append(tx: Tx, event: OfferedEvent & { type: AccountEventType }): Promise<void> {
  const { tenantId, eventId, type, payload, now } = event;
  if (await rests(tx, event)) return;
  await Promise.all([
    tx.sql(
      `with stream as (
         insert into data.account_stream as s (tenant_id, last_seq) values ($2, 1)
         on conflict (tenant_id) do update set last_seq = s.last_seq + 1 returning last_seq)
       insert into data.account_event (id, tenant_id, seq, type, payload, created_at)
       select $1, $2, stream.last_seq, $3, $4, $5 from stream`,
      [eventId, tenantId, type, JSON.stringify(payload), now],
    ),
    offerDeliveries(tx, [event]),
  ]);
  tx.wake(dataTopics.accountEvents(tenantId));
}

/**
 * Whether the type was recorded so lately that it is not again; an event that lies ahead is from before the wall clock was
 * set back. The stream's lock comes first: of several one is recorded.
 */
async function rests(tx: Tx, { tenantId, type, now }: OfferedEvent & { type: AccountEventType }): Promise<boolean> {
  const restMs = restOf(type);
  if (restMs === null) return false;
  await tx.sql(
    `insert into data.account_stream as s (tenant_id, last_seq) values ($1, 0)
     on conflict (tenant_id) do update set last_seq = s.last_seq`,
    [tenantId],
  );
  const recent = await tx.sql(
    "select 1 from data.account_event where tenant_id = $1 and type = $2 and created_at > $3 and created_at < $4 limit 1",
    [tenantId, type, new Date(now.getTime() - restMs), new Date(now.getTime() + LIMITS.clockSkewMs)],
  );
  return recent.length > 0;
}
