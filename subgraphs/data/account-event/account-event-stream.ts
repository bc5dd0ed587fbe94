import { Field, Int, ObjectType } from "type-graphql";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { follow } from "../../../infra/live/follow.ts";
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
    read: async (from) => {
      const events = await db.rows(AccountEvent, "where t.tenant_id = $1 and t.seq > $2 order by t.seq limit $3", [
        tenantId,
        from,
        LIMITS.eventPage,
      ]);
      const rows = events.map((event): AccountEventItem => ({ event, cursor: event.seq }));
      return { rows, after: rows.at(-1)?.cursor ?? from, done: false, more: events.length === LIMITS.eventPage };
    },
  });
}
