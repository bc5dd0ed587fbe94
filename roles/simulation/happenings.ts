import type { Queryer } from "../../infra/db/database.ts";

/** What came up in a world, how often each: by whose part of it it was, and then by what happened. */
export type Happenings = Record<string, Record<string, number>>;

/** Parts of a world in which things come up. */
export type Part = "platform" | "died under" | "queue" | "supplier" | "hosts" | "store" | "receivers" | "customers";

/** Counts what really came up, where it takes effect: a fault that was wished for and met nobody is none. */
export class HappeningCounter {
  readonly #counts: Happenings = {};

  readonly count = (part: Part, what: string): void => {
    add(this.#counts, part, what, 1);
  };

  /** So far, with what the tables tell of. */
  async all(q: Pick<Queryer, "sql">): Promise<Happenings> {
    const rows = await q.sql<{ part: string; name: string; count: bigint }>(`${TOLD_BY_ROWS} order by 1, 2`);
    const all = structuredClone(this.#counts);
    for (const { part, name, count } of rows) add(all, part, name, Number(count));
    return all;
  }
}

/** `cancelled while`: the status of which the events had told last. */
const TOLD_BY_ROWS = `
  select 'failed orders' as part, payload->>'code' as name, count(*) from compute.workload_event
  where type = 'workload.placement_failed' group by 2
  union all
  select 'interruptions', payload->>'trigger', count(*) from compute.workload_event
  where type = 'workload.interrupted' group by 2
  union all
  select 'waits', payload->>'reason', count(*) from compute.workload_event where type = 'workload.waiting' group by 2
  union all
  select 'deliveries', coalesce(last_error, state), count(*) from data.webhook_delivery group by 2
  union all
  select 'store', 'results ended', count(*) from compute.workload where results_removed_at is not null group by 2
  union all
  select 'cancelled while', replace(told.type, 'workload.', ''), count(*) from compute.workload_event c
    cross join lateral (
      select type from compute.workload_event b where b.workload_id = c.workload_id and b.seq < c.seq
        and b.type in ('workload.accepted', 'workload.planning', 'workload.reserving', 'workload.provisioning',
                       'workload.running', 'workload.recovering')
      order by b.seq desc limit 1) told
  where c.type = 'workload.cancel_requested' group by 2`;

/** Adds up what came up in several worlds. */
export function sumOf(worlds: readonly Happenings[]): Happenings {
  const sum: Happenings = {};
  for (const world of worlds)
    for (const [part, counts] of Object.entries(world))
      for (const [what, times] of Object.entries(counts)) add(sum, part, what, times);
  return sum;
}

function add(to: Happenings, part: string, what: string, times: number): void {
  const counts = to[part] ?? {};
  to[part] = counts;
  counts[what] = (counts[what] ?? 0) + times;
}
