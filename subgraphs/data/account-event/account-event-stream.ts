import { Field, Int, ObjectType } from "type-graphql";
import type { Queryer } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { BatchedReads } from "../../../infra/live/batched-reads.ts";
import { follow, type Page } from "../../../infra/live/follow.ts";
import type { DataContext } from "../data-context.ts";
import { dataTopics } from "../topics.ts";
import { AccountEvent } from "./account-event.entity.ts";

@ObjectType({ description: "One item of the team's stream of events." })
export class AccountEventItem {
  @Field(() => AccountEvent, { description: "The event.", simple: true }) event!: AccountEvent;
  @Field(() => Int, { description: "Where the item stands; give it as `after` to go on from here.", simple: true })
  cursor!: number;
}

/** A team's events after a number, then as they happen; it has no end of its own. */
export function followAccountEvents(
  { db, data }: Pick<DataContext, "db" | "data">,
  { tenantId, after }: { tenantId: string; after: number },
): AsyncIterable<AccountEventItem> {
  return follow<AccountEventItem, number>({
    wakeups: data.wakeups,
    topic: dataTopics.accountEvents(tenantId),
    after,
    share: (from) => `${tenantId} ${from}`,
    read: (from) => readEvents(db, tenantId, from),
  });
}

/** Number of each team's newest event. Most looks find nothing new, and learn it with those of other teams. */
const newest = new BatchedReads<string, number>(String, async (db, tenantIds) => {
  const rows = await db.sql<{ tenantId: string; lastSeq: number }>(
    `select tenant_id as "tenantId", last_seq as "lastSeq" from data.account_stream where tenant_id = any($1::text[])`,
    [tenantIds],
  );
  const found = new Map(rows.map(({ tenantId, lastSeq }) => [tenantId, lastSeq]));
  return tenantIds.map((tenantId) => found.get(tenantId) ?? 0);
});

async function readEvents(db: Queryer, tenantId: string, after: number): Promise<Page<AccountEventItem, number>> {
  if ((await newest.read(db, tenantId)) <= after) return { rows: [], after, done: false, more: false };
  const events = await db.rows(AccountEvent, "where t.tenant_id = $1 and t.seq > $2 order by t.seq limit $3", [
    tenantId,
    after,
    LIMITS.eventPage,
  ]);
  const rows = events.map((event): AccountEventItem => ({ event, cursor: event.seq }));
  return { rows, after: rows.at(-1)?.cursor ?? after, done: false, more: events.length === LIMITS.eventPage };
}
