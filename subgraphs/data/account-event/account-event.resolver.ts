import { Arg, Ctx, Int, Query, Resolver, Root, Subscription } from "type-graphql";
import { connectionOf, FIRST, type Page, page, pageSize } from "../../../infra/graphql/connection.ts";
import { actorOf } from "../../../infra/graphql/context.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import type { DataContext } from "../data-context.ts";
import { opening } from "../opening.ts";
import { AccountEvent } from "./account-event.entity.ts";
import { AccountEventItem, followAccountEvents } from "./account-event-stream.ts";

const AccountEventConnection = connectionOf(AccountEvent, "AccountEvent");

@Resolver(() => AccountEvent)
export class AccountEventResolver {
  @Query(() => AccountEventConnection, {
    description: "What happened to the team's assets, exports, connections and account, oldest first.",
  })
  accountEvents(
    @Ctx() context: DataContext,
    @Arg("first", FIRST.type, FIRST.options) first: number | null,
    @Arg("after", () => String, { nullable: true, description: "Go on after this cursor." }) after: string | null,
  ): Promise<Page<AccountEvent>> {
    const { tenantId } = actorOf(context, "data:read");
    return page<AccountEvent>({
      list: "accountEvents",
      first: pageSize(first),
      after,
      keyLength: 1,
      keyOf: (event) => [event.seq],
      read: (key, limit) =>
        context.db.rows(AccountEvent, "where t.tenant_id = $1 and t.seq > $2 order by t.seq limit $3", [
          tenantId,
          requireSeq(key?.[0] ?? 0),
          limit,
        ]),
    });
  }

  @Subscription(() => AccountEventItem, {
    name: "accountEvents",
    description: "The team's events after a number, and then as they happen, for as long as the caller listens.",
    subscribe: opening<{ after: number | null }, AccountEventItem>((args, context) => {
      const { tenantId } = actorOf(context, "data:read");
      return followAccountEvents(context, { tenantId, after: requireSeq(args.after ?? 0) });
    }),
  })
  followAccountEvents(
    @Root() item: AccountEventItem,
    @Arg("after", () => Int, {
      nullable: true,
      description: "Go on after the event of this number; from the first one unless given.",
    })
    _after: number | null,
  ): AccountEventItem {
    return item;
  }
}

const MAX_SEQ = 2 ** 31 - 1;

function requireSeq(after: unknown): number {
  if (typeof after !== "number" || after < 0 || after > MAX_SEQ || !Number.isInteger(after))
    throw new Refused(COMMON.invalid_cursor, { field: "/after" });
  return after;
}
