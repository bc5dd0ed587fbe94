import type { Database } from "../../infra/db/database.ts";
import { isDelivered } from "../../subgraphs/data/account-event/event-types.ts";
import { STEADY_TEAM } from "./webhook-owners.ts";
import type { World } from "./world.ts";

/** What is left over when all has become quiet: nothing may be. Each statement returns what is. */
const LEFT_OVER: Record<string, string> = {
  "every workload is over and settled": `
    select id, status, reason, waiting_reason, held_micros from compute.workload where settled_at is null`,
  "nothing is reserved or held": `
    select id, held_micros, active_runs from compute.account where held_micros <> 0 or active_runs <> 0`,
  "no capacity is taken": `select id, slots_used from compute.capacity where slots_used <> 0 or cpu_millis_used <> 0`,
  "every order is gone": `select id, state, supplier_said from compute.attempt where state <> 'gone'`,
  "every placement is closed": `select id, state from compute.placement where state <> 'closed'`,
  "every log is committed": `
    select id, log_bytes from compute.placement where log_bytes > 0 and log_committed_at is null and log_removed_at is null`,
  "every delivery is over": `select id, last_error, due_at, attempts from data.webhook_delivery where state = 'pending'`,
  "every stage is over": `select id, status from compute.stage where ended_at is null`,
};

const EVERY = Object.entries(LEFT_OVER)
  .map(([sentence, text]) => `(select '${sentence}' as sentence, to_jsonb(t) as row from (${text}) t limit 3)`)
  .join(" union all ");

/** What should be over by now and is not, after the sentences that say so. */
export async function leftOver(db: Database, world: World): Promise<string[]> {
  const rows = await db.sql<{ sentence: string; row: unknown }>(EVERY);
  const live = world.market.live.map(({ id, state }) => `${id} is ${state}`);
  return [
    ...rows.map(({ sentence, row }) => `not true: ${sentence}: ${JSON.stringify(row)}`),
    ...(await unsent(db)),
    ...(await untaken(db, world)),
    ...live.map((order) => `not true: nothing runs at the supplier: ${order}`),
  ];
}

/** Events of the steady team that are to be sent and never were: its webhook was on from the beginning. */
async function unsent(db: Database): Promise<string[]> {
  const events = await db.sql<{ id: string; type: string }>(
    `select e.id, e.type from (
       select id, type, tenant_id from data.account_event
       union all select e.id, e.type, w.tenant_id from compute.workload_event e join compute.workload w on w.id = e.workload_id) e
     where e.tenant_id = $1 and not exists (select 1 from data.webhook_delivery d where d.event_id = e.id)
       and not exists (select 1 from data.account_event off where off.tenant_id = $1 and off.type = 'webhook.disabled')`,
    [STEADY_TEAM],
  );
  return events
    .filter(({ type }) => isDelivered(type))
    .map(({ id, type }) => `not true: an event is sent when its team wants it: ${type} ${id}`);
}

async function untaken(db: Database, world: World): Promise<string[]> {
  const rows = await db.sql<{ id: string }>("select id from data.webhook_delivery where state = 'delivered'");
  return rows
    .filter(({ id }) => !world.receivers.taken.has(id))
    .map(({ id }) => `not true: what is delivered was taken: ${id}`);
}

/** Workloads that have not been settled. */
export async function unsettled(db: Database): Promise<number> {
  const [row] = await db.sql<{ count: bigint }>("select count(*) from compute.workload where settled_at is null");
  return Number(row!.count);
}
