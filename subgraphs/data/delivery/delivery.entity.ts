import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, object } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";
import type { Attempt } from "./attempt.ts";

export const DELIVERY_STATES = closed("WebhookDeliveryState", "How far the sending of an event has come.", [
  "pending",
  "delivered",
  "failed",
]);

/** One event on its way to a team's webhook. */
@object("data", "webhook_delivery", "One event on its way to the team's webhook.")
@Index({
  name: "webhook_delivery_pending",
  expression:
    "create index webhook_delivery_pending on data.webhook_delivery (tenant_id, due_at) where state = 'pending'",
})
@Index({
  name: "webhook_delivery_busy",
  expression:
    "create index webhook_delivery_busy on data.webhook_delivery (tenant_id) where state = 'pending' and (queued_until is not null or claimed_until is not null)",
})
@Index({ name: "webhook_delivery_list", properties: ["tenantId", "createdAt", "id"] })
@Index({
  name: "webhook_delivery_old",
  expression: "create index webhook_delivery_old on data.webhook_delivery (created_at) where state <> 'pending'",
})
export class WebhookDelivery {
  @attr.id("The delivery's id, `dlv_…`; the receiver sees it as `delivery_id`.") id!: string;
  @column.text() tenantId!: string;
  @attr.ref("The event.", { nullable: true }) eventId!: string | null;
  @attr.text("What happened, such as `workload.completed`.") eventType!: string;
  /** The very text that is sent in each attempt; null for a request that is never sent again. */
  @column.text({ nullable: true }) body!: string | null;
  @attr.oneOf(DELIVERY_STATES, "How far it has come.") state!: (typeof DELIVERY_STATES)[number];
  /** Attempts begun; the number of the newest is its fence. */
  @attr.int("How many attempts were begun.") attempts!: number;
  /** Attempts begun since it was asked for, or asked for again: they decide how long the next wait is. */
  @column.int() tries!: number;
  @column.document<Attempt[]>() attemptLog!: Attempt[];
  /** Business time of the next attempt; null when there will be none. */
  @attr.at("When it is sent next; null when it will not be.", { nullable: true }) dueAt!: Date | null;
  /** Until then a queued job is expected to begin the attempt. */
  @column.at({ nullable: true }) queuedUntil!: Date | null;
  /** Until then an attempt may be under way; past it, the sender is dead. */
  @column.at({ nullable: true }) claimedUntil!: Date | null;
  /** No attempt begins after. */
  @column.at() retriesUntil!: Date;
  @attr.text("Why the newest attempt failed, in a word; null when none has, or the newest one succeeded.", {
    nullable: true,
  })
  lastError!: string | null;
  @attr.at("When the event was recorded.") createdAt!: Date;
  @attr.at("When it was delivered or given up; null before.", { nullable: true }) endedAt!: Date | null;
}
