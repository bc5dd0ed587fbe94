import { Field, Int, ObjectType } from "type-graphql";
import type { Queryer } from "../../../infra/db/database.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import {
  BatchedReads,
  inOrder,
  ONE_OF_THE_OWNED,
  type Owned,
  ownedName,
  ownedValues,
} from "../../../infra/live/batched-reads.ts";
import { follow, type Page } from "../../../infra/live/follow.ts";
import type { ComputeContext } from "../compute-context.ts";
import { topics } from "../topics.ts";
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
  if (!isId("workload", workloadId) || !(await standings.read(source.db, { tenantId, id: workloadId })))
    throw new Refused(COMMON.not_found, { field: "/workloadId" });
  return follow<WorkloadEventItem, number>({
    wakeups: source.compute.wakeups,
    topic: topics.workload(workloadId),
    after,
    share: (from) => `${tenantId} ${from}`,
    read: (from) => readEvents(source, { tenantId, workloadId, after: from }),
  });
}

type EventPage = Page<WorkloadEventItem, number>;

/** How far a workload's events go. */
interface EventStanding extends Owned {
  lastSeq: number;
  /** No further event will come. */
  over: boolean;
}

/** Most looks find nothing new, and learn it with those at other workloads. */
const standings = new BatchedReads<Owned, EventStanding | null>(ownedName, async (db, workloads) => {
  const rows = await db.sql<EventStanding>(
    `select w.tenant_id as "tenantId", w.id, w.event_seq as "lastSeq", w.terminal_at is not null and not exists
       (select 1 from compute.placement p where p.workload_id = w.id and p.state <> 'closed') as over
     from compute.workload w where (w.tenant_id, w.id) ${ONE_OF_THE_OWNED}`,
    ownedValues(workloads),
  );
  return inOrder(workloads, rows, (row) => row);
});

async function readEvents({ db }: Source, { tenantId, workloadId, after }: EventSubscription): Promise<EventPage> {
  // The standing first: what comes between the two reads is found by the next one, for then the workload was not over.
  const standing = await standings.read(db, { tenantId, id: workloadId });
  const events = await eventsAfter(db, { tenantId, workloadId, after }, standing?.lastSeq ?? after);
  const rows = events.map((event): WorkloadEventItem => ({ event, cursor: event.seq, complete: false }));
  const last = rows.at(-1)?.cursor ?? after;
  const done = (standing?.over ?? true) && last >= (standing?.lastSeq ?? 0);
  if (done) rows.push({ event: null, cursor: last, complete: true });
  return { rows, after: last, done, more: events.length === LIMITS.eventPage };
}

/** A page of them; none are looked for where the last one is known already. */
async function eventsAfter(db: Queryer, ask: EventSubscription, last: number): Promise<WorkloadEvent[]> {
  if (last <= ask.after) return [];
  return db.rows(
    WorkloadEvent,
    "where t.tenant_id = $1 and t.workload_id = $2 and t.seq > $3 order by t.seq limit $4",
    [ask.tenantId, ask.workloadId, ask.after, LIMITS.eventPage],
  );
}
