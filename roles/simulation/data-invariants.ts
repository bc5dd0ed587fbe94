import { LIMITS } from "../../infra/kernel/limits.ts";
import { RETRY_WAITS_MS } from "../../subgraphs/data/delivery/retry-schedule.ts";

/** What is true of data's tables after every commit, as `ALWAYS` says of compute's. */
export const DATA_ALWAYS: Readonly<Record<string, string>> = {
  "account events are numbered without a gap": `
    select s.tenant_id, s.last_seq from data.account_stream s left join data.account_event e on e.tenant_id = s.tenant_id
    group by s.tenant_id, s.last_seq having count(e.id) <> s.last_seq or coalesce(max(e.seq), 0) <> s.last_seq`,
  "an event is sent as one delivery": `
    select tenant_id, event_id from data.webhook_delivery where event_id is not null
    group by tenant_id, event_id having count(id) > 1`,
  "a delivery has a time for its next try exactly while it is pending, and an end exactly once it is over": `
    select id, state, due_at, ended_at from data.webhook_delivery
    where (state = 'pending') <> (due_at is not null) or (state = 'pending') <> (ended_at is null)`,
  "a delivery that is over is in nobody's hands": `
    select id, state, queued_until, claimed_until from data.webhook_delivery
    where state <> 'pending' and claimed_until is not null`,
  "what is delivered was answered with success": `
    select id, attempts, last_error, attempt_log from data.webhook_delivery
    where state = 'delivered' and (attempts = 0 or last_error is not null
      or coalesce((attempt_log->-1->>'status')::int, 0) not between 200 and 299)`,
  "a delivery fails because it is not wanted any more, or after a day of tries": `
    select id, last_error, ended_at, retries_until from data.webhook_delivery
    where state = 'failed' and (last_error is null or (last_error not in ('webhook_off', 'gone') and ended_at < retries_until))`,
};

const WAIT_MS = `case when d.tries = 0 then 0
  else (array[${RETRY_WAITS_MS.join(", ")}])[least(d.tries, ${RETRY_WAITS_MS.length})] end + ${LIMITS.clockSkewMs}`;

/**
 * Teams with something to send, by a text that is another one after every attempt, and deliveries whose next try lies
 * farther ahead than a wait can be: those are from before the clock was set back. Now is `$3`.
 */
export const DUE_DELIVERIES = `
  select 'send for ' || d.tenant_id || ' after ' || sum(d.attempts) from data.webhook_delivery d group by d.tenant_id
  having bool_or(d.state = 'pending' and d.due_at <= $3)
  union all select 'send ' || d.id || ' at ' || d.due_at from data.webhook_delivery d
  where d.state = 'pending' and d.due_at > $3 + make_interval(secs => (${WAIT_MS}) / 1000.0)`;
