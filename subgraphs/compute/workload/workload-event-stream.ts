import { Field, Int, ObjectType } from "type-graphql";
import type { Database } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { follow, type Page } from "../../../infra/live/follow.ts";
import { SharedReads } from "../../../infra/live/shared-read.ts";
import type { ComputeContext } from "../compute-context.ts";
import { topics } from "../topics.ts";
import { findWorkload } from "./workload.reads.ts";
import { WorkloadEvent } from "./workload-event.entity.ts";

@ObjectType({ description: "One item of a stream of events." })
export class WorkloadEventItem {
  @Field(() => WorkloadEvent, { nullable: true, description: "The event; null on the last item.", simple: true })
  event!: WorkloadEvent | null;
  @Field(() => Int, { description: "Where the item stands; give it as `after` to go on from here.", simple: true })
  cursor!: number;
  @Field(() => Boolean, {
    description: "True on the last item: the workload is over, and all is settled.",
    simple: true,
  })
  complete!: boolean;
}

type Source = Pick<ComputeContext, "db" | "compute">;

export interface EventSubscription {
  tenantId: string;
  workloadId: string;
  /** Number of the last event that is known. */
  after: number;
}

/** Events after a cursor, then live, then one item that says that there will be no more. */
export async function followEvents(
  source: Source,
  { tenantId, workloadId, after }: EventSubscription,
): Promise<AsyncIterable<WorkloadEventItem>> {
  if (!(await findWorkload(source.db, tenantId, workloadId)))
    throw new Refused(COMMON.not_found, { field: "/workloadId" });
  return follow<WorkloadEventItem, number>({
    wakeups: source.compute.wakeups,
    topic: topics.workload(workloadId),
    after,
    read: (from) =>
      readsOf(source.db).read(`${tenantId} ${workloadId} ${from}`, () =>
        readEvents(source, { tenantId, workloadId, after: from }),
      ),
  });
}

type EventPage = Page<WorkloadEventItem, number>;

const shared = new WeakMap<Database, SharedReads<EventPage>>();

/** Followers of one workload are woken together, and most of them stand at the same event. */
function readsOf(db: Database): SharedReads<EventPage> {
  const reads = shared.get(db) ?? new SharedReads<EventPage>();
  shared.set(db, reads);
  return reads;
}

async function readEvents({ db }: Source, { tenantId, workloadId, after }: EventSubscription): Promise<EventPage> {
  // The state first: what comes between the two reads is found by the next one, for then the state was not over.
  const [state] = await db.sql<{ event_seq: number; over: boolean }>(
    `select w.event_seq, w.terminal_at is not null and not exists
       (select 1 from compute.placement p where p.workload_id = w.id and p.state <> 'closed') as over
     from compute.workload w where w.tenant_id = $1 and w.id = $2`,
    [tenantId, workloadId],
  );
  const events = await eventsAfter(db, { tenantId, workloadId, after }, state?.event_seq ?? after);
  const rows = events.map((event): WorkloadEventItem => ({ event, cursor: event.seq, complete: false }));
  const last = rows.at(-1)?.cursor ?? after;
  const done = (state?.over ?? true) && last >= (state?.event_seq ?? 0);
  if (done) rows.push({ event: null, cursor: last, complete: true });
  return { rows, after: last, done, more: events.length === LIMITS.eventPage };
}

/** A page of them; none are looked for where the last one is known already, as most looks find nothing new. */
async function eventsAfter(db: Database, ask: EventSubscription, last: number): Promise<WorkloadEvent[]> {
  if (last <= ask.after) return [];
  return db.rows(
    WorkloadEvent,
    "where t.tenant_id = $1 and t.workload_id = $2 and t.seq > $3 order by t.seq limit $4",
    [ask.tenantId, ask.workloadId, ask.after, LIMITS.eventPage],
  );
}
