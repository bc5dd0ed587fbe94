import {
  Arg,
  Ctx,
  Field,
  FieldResolver,
  InputType,
  Int,
  Mutation,
  ObjectType,
  Query,
  Resolver,
  Root,
} from "type-graphql";
import { actorOf, adminOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { Usd } from "../../../infra/graphql/scalars.ts";
import { lesserMicros, type Micros } from "../../../infra/kernel/micros.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import type { ComputeContext } from "../compute-context.ts";
import { monthToDateMicros, trialBalance } from "../ledger/ledger.commands.ts";
import { hasControl } from "../workload/validate/text.ts";
import { type AccountLimits, grantCredit, setLimits } from "./account.commands.ts";
import { Account } from "./account.entity.ts";

const MAX_NOTE_LENGTH = 200;

@InputType({ description: "Credits to give to the team." })
export class GrantCreditInput {
  @Field(() => Usd, { description: "How much, in US dollars." }) amountUsd!: Micros;
  @Field(() => String, { nullable: true, description: "Why; it stays in the books." }) note?: string | null;
}

@InputType({ description: "The team's limits. What is left out stays as it is." })
export class SetAccountLimitsInput {
  @Field(() => Boolean, { nullable: true, description: "A payment method is on file." }) paymentMethod?: boolean | null;
  @Field(() => Usd, { nullable: true, description: "Most that may be spent in a calendar month; null for no cap." })
  monthlyCapUsd?: Micros | null;
  @Field(() => Int, { nullable: true, description: "Most workloads that may be unfinished at once." })
  concurrentRunsLimit?: number | null;
}

@ObjectType({ description: "The account as it is now." })
export class AccountPayload {
  @Field(() => Account, { description: "The account.", simple: true }) account!: Account;
}

@Resolver(() => Account)
export class AccountResolver {
  @Query(() => Account, { nullable: true, description: "The team's money and limits; null when it has no account." })
  account(@Ctx() context: ComputeContext): Promise<Account | null> {
    return context.db.row(Account, "where t.id = $1", [actorOf(context).tenantId]);
  }

  @Mutation(() => AccountPayload, {
    description: "Gives the team credits; sent twice it gives twice. Administrators only.",
  })
  async grantCredit(
    @Arg("input", () => GrantCreditInput, { description: "How much." }) input: GrantCreditInput,
    @Ctx() context: ComputeContext,
  ): Promise<AccountPayload> {
    const { tenantId: teamId } = adminOf(context);
    const note = input.note ?? "";
    if (note.length > MAX_NOTE_LENGTH || hasControl(note) || !note.isWellFormed())
      throw new Refused(COMMON.invalid_request, {
        field: "/note",
        message: `note is one line of at most ${MAX_NOTE_LENGTH} characters.`,
      });
    return { account: await grantCredit(context.db, { teamId, micros: input.amountUsd, note }, context.clock.now()) };
  }

  @Mutation(() => AccountPayload, { description: "Sets the team's limits. Administrators only." })
  async setAccountLimits(
    @Arg("input", () => SetAccountLimitsInput, { description: "The limits." }) input: SetAccountLimitsInput,
    @Ctx() context: ComputeContext,
  ): Promise<AccountPayload> {
    const { tenantId } = adminOf(context);
    const { monthlyCapUsd, paymentMethod, concurrentRunsLimit } = input;
    const limits: AccountLimits = {
      ...(monthlyCapUsd === undefined ? {} : { monthlyCapMicros: monthlyCapUsd }),
      paymentMethod: paymentMethod ?? undefined,
      concurrentRunsLimit: concurrentRunsLimit ?? undefined,
    };
    return { account: await setLimits(context.db, tenantId, limits, context.clock.now()) };
  }

  @FieldResolver(() => Usd, { description: "Charged in the current calendar month (UTC)." })
  monthToDateUsd(@Root() account: Account, @Ctx() context: ComputeContext): Micros {
    return monthToDateMicros(account, context.clock.now());
  }

  @FieldResolver(() => Usd, { description: "What new work may still reserve." })
  headroomUsd(@Root() account: Account, @Ctx() context: ComputeContext): Micros {
    const free = account.balanceMicros - account.heldMicros;
    if (account.monthlyCapMicros === null) return free;
    const underCap = account.monthlyCapMicros - monthToDateMicros(account, context.clock.now()) - account.heldMicros;
    return lesserMicros(free, underCap);
  }

  @FieldResolver(() => Usd, { description: "All entries of the team's books together: zero, or something is wrong." })
  trialBalanceUsd(@Root() account: Account, @Ctx() context: ComputeContext): Promise<Micros> {
    return trialBalance(context.db, account.id);
  }
}

/** The caller's own account; null for another team's. */
export async function accountReference(reference: { id: string }, context: GraphContext): Promise<Account | null> {
  const { tenantId } = actorOf(context);
  return reference.id === tenantId ? context.db.row(Account, "where t.id = $1", [tenantId]) : null;
}
