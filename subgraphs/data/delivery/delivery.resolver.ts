import {
  Arg,
  Ctx,
  Field,
  FieldResolver,
  GraphQLISODateTime,
  ID,
  InputType,
  Int,
  Mutation,
  ObjectType,
  Query,
  Resolver,
  Root,
} from "type-graphql";
import { enumOf } from "../../../infra/db/closed.ts";
import { connectionOf, FIRST, type Page, page, pageSize } from "../../../infra/graphql/connection.ts";
import { actorOf } from "../../../infra/graphql/context.ts";
import type { DataContext } from "../data-context.ts";
import { listDeliveries, redeliver } from "./delivery.commands.ts";
import { DELIVERY_STATES, WebhookDelivery } from "./delivery.entity.ts";

@ObjectType({ description: "One attempt to send an event. Nothing that the receiver said is kept but its status." })
export class WebhookAttempt {
  @Field(() => Int, { description: "Its number, from 1; the receiver sees it as `X-Nodus-Attempt`.", simple: true })
  number!: number;
  @Field(() => GraphQLISODateTime, { description: "When it began.", simple: true }) at!: Date;
  @Field(() => Int, {
    nullable: true,
    description: "Milliseconds it took. Null while it is under way, and for good if the sender died in it.",
    simple: true,
  })
  durationMs!: number | null;
  @Field(() => Int, { nullable: true, description: "HTTP status of the answer; null without one.", simple: true })
  status!: number | null;
  @Field(() => String, { nullable: true, description: "Why it failed, in a word; null if it has not.", simple: true })
  error!: string | null;
}

const WebhookDeliveryConnection = connectionOf(WebhookDelivery, "WebhookDelivery");

@InputType({ description: "The delivery to send again." })
export class RedeliverWebhookInput {
  @Field(() => ID, { description: "The delivery's id." }) id!: string;
}

@ObjectType({ description: "A delivery that is sent again." })
export class RedeliverWebhookPayload {
  @Field(() => WebhookDelivery, { description: "The delivery.", simple: true }) delivery!: WebhookDelivery;
}

@Resolver(() => WebhookDelivery)
export class WebhookDeliveryResolver {
  @Query(() => WebhookDeliveryConnection, {
    description: "Events that were sent to the team's webhook or will be, newest first, for 30 days.",
  })
  webhookDeliveries(
    @Ctx() context: DataContext,
    @Arg("first", FIRST.type, FIRST.options) first: number | null,
    @Arg("after", () => String, { nullable: true, description: "Go on after this cursor." }) after: string | null,
    @Arg("state", () => enumOf(DELIVERY_STATES), { nullable: true, description: "Only those that came this far." })
    state: WebhookDelivery["state"] | null,
  ): Promise<Page<WebhookDelivery>> {
    const { tenantId } = actorOf(context, "data:read");
    return page<WebhookDelivery>({
      list: "webhookDeliveries",
      first: pageSize(first),
      after,
      keyLength: 2,
      keyOf: (delivery) => [delivery.createdAt.getTime(), delivery.id],
      read: (key, limit) => listDeliveries(context.db, { tenantId, state: state ?? null, after: key, limit }),
    });
  }

  @FieldResolver(() => [WebhookAttempt], { description: "Its attempts, oldest first; at most the newest 50." })
  attemptLog(@Root() delivery: WebhookDelivery): WebhookAttempt[] {
    return delivery.attemptLog.map((attempt) => ({ ...attempt, at: new Date(attempt.at) }));
  }

  @Mutation(() => RedeliverWebhookPayload, {
    description:
      "Sends an event again now, whatever became of it: the same delivery with the same bytes, retried for another day.",
  })
  async redeliverWebhook(
    @Arg("input", () => RedeliverWebhookInput, { description: "The delivery to send again." })
    input: RedeliverWebhookInput,
    @Ctx() context: DataContext,
  ): Promise<RedeliverWebhookPayload> {
    const actor = actorOf(context, "data:write");
    return { delivery: await redeliver(context.db, actor, input.id, context.clock.now()) };
  }
}
