import { Arg, Ctx, Field, GraphQLISODateTime, InputType, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import { actorOf } from "../../../infra/graphql/context.ts";
import type { DataContext } from "../data-context.ts";
import { deleteWebhook, getWebhook, putWebhook } from "./webhook.commands.ts";

@ObjectType("Webhook", { description: "Where a team's events are sent. Its secret is shown once, when it is written." })
export class WebhookView {
  @Field(() => String, { description: "The address.", simple: true }) url!: string;
  @Field(() => Boolean, {
    description: "Whether events are sent. False after the receiver refused for long; writing it again starts it.",
    simple: true,
  })
  enabled!: boolean;
  @Field(() => GraphQLISODateTime, { nullable: true, description: "When it was turned off.", simple: true })
  disabledAt!: Date | null;
  @Field(() => GraphQLISODateTime, {
    nullable: true,
    description: "Since when no attempt has succeeded; null while they do.",
    simple: true,
  })
  failingSince!: Date | null;
}

@InputType({ description: "The webhook to write." })
export class PutWebhookInput {
  @Field(() => String, { description: "A public https:// address without credentials." }) url!: string;
  @Field(() => String, {
    nullable: true,
    description:
      "16 to 256 printable ASCII characters. A new one is made without it, also when only the address changes.",
  })
  secret?: string | null;
}

@ObjectType({ description: "A webhook that was written." })
export class PutWebhookPayload {
  @Field(() => WebhookView, { description: "The webhook.", simple: true }) webhook!: WebhookView;
  @Field(() => String, { description: "What deliveries are signed with. It is shown here only.", simple: true })
  secret!: string;
}

@ObjectType({ description: "A webhook that was deleted." })
export class DeleteWebhookPayload {
  @Field(() => String, { description: "`deleted`.", simple: true }) status!: string;
}

@Resolver()
export class WebhookResolver {
  @Query(() => WebhookView, {
    nullable: true,
    description: "The team's webhook. Refused as `webhook_not_configured` when there is none.",
  })
  async webhook(@Ctx() context: DataContext): Promise<WebhookView> {
    const { tenantId } = actorOf(context, "data:read");
    const { url, disabledAt, failingSince } = await getWebhook(context.db, tenantId);
    return { url, enabled: disabledAt === null, disabledAt, failingSince };
  }

  @Mutation(() => PutWebhookPayload, {
    description: "Writes the team's one webhook and starts it. Whoever has the team's key may.",
  })
  async putWebhook(
    @Arg("input", () => PutWebhookInput, { description: "The webhook to write." }) input: PutWebhookInput,
    @Ctx() context: DataContext,
  ): Promise<PutWebhookPayload> {
    const actor = actorOf(context, "data:write");
    const { secretBox: box, exceptions } = context.data;
    const { url, secret } = await putWebhook({ db: context.db, box, exceptions }, actor, input, context.clock.now());
    return { webhook: { url, enabled: true, disabledAt: null, failingSince: null }, secret };
  }

  @Mutation(() => DeleteWebhookPayload, {
    description: "Deletes the team's webhook and its secret, and gives up what was still to be sent.",
  })
  async deleteWebhook(@Ctx() context: DataContext): Promise<DeleteWebhookPayload> {
    await deleteWebhook(context.db, actorOf(context, "data:write"), context.clock.now());
    return { status: "deleted" };
  }
}
