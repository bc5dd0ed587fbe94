import { Index, Unique } from "@mikro-orm/decorators/legacy";
import { attr, column, document, object, table } from "../../../infra/db/attr.ts";
import type { JsonValue } from "../../../infra/kernel/json-value.ts";

/** One thing that happened to what a team owns besides its runs. */
@object("data", "account_event", "One thing that happened to the team's assets, exports, connections or account.")
@Unique({
  name: "account_event_order",
  expression: "create unique index account_event_order on data.account_event (tenant_id, seq)",
})
@Index({ name: "account_event_type", properties: ["tenantId", "type", "createdAt"] })
export class AccountEvent {
  @attr.id("The event's id, `evt_…`.") id!: string;
  @column.text() tenantId!: string;
  @attr.int("Its number within the team, from 1 without gaps.") seq!: number;
  @attr.text("What happened, such as `asset.ready`.") type!: string;
  @document<Record<string, JsonValue>>("Particulars, in wire spelling.") payload!: Record<string, JsonValue>;
  @attr.at("When it happened.") createdAt!: Date;
}

/** Numbers a team's events: its row's lock makes them appear in the order of their numbers. */
@table("data", "account_stream")
export class AccountStream {
  @column.text({ primary: true }) tenantId!: string;
  /** Number of the newest event. */
  @column.int() lastSeq!: number;
}
