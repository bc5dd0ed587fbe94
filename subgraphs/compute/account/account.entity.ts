import { attr, column, entity } from "../../../infra/db/attr.ts";

/** A team's money. What is free to spend is `balance - held`, and under a monthly cap also `cap - spent this month - held`. */
@entity("compute", "account", "A team's money and limits.")
export class Account {
  @attr.id("The team's id.") id!: string;
  @attr.money("Credits left, before what is held.") balanceMicros!: bigint;
  @attr.money("Reserved for work that is under way.") heldMicros!: bigint;
  @attr.money("Most that may be spent in a calendar month (UTC); null for no cap.", { nullable: true })
  monthlyCapMicros!: bigint | null;
  /** Posted charges of the month that starts at `monthStart`; another month's figure counts as zero. */
  @column.money() monthSpendMicros!: bigint;
  @column.at() monthStart!: Date;
  @attr.flag("A payment method is on file; without one nothing is admitted.") paymentMethod!: boolean;
  @attr.int("Most workloads that may be unfinished at once.") concurrentRunsLimit!: number;
  @attr.int("Workloads that are not finished.", { defaultRaw: "0" }) activeRuns!: number;
  /** False once the books did not add up: nothing is admitted until somebody has looked. */
  @column.flag({ defaultRaw: "true" }) booksBalanced!: boolean;
  @column.at() createdAt!: Date;
  @column.at() updatedAt!: Date;
}
