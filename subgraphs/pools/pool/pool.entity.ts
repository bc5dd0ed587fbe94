import { Index } from "@mikro-orm/decorators/legacy";
import { Field } from "type-graphql";
import { attr, column, entity } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";
import { SafeInt } from "../../../infra/graphql/scalars.ts";

const WAIT_POLICIES = closed("PoolWaitPolicy", "When work for a pool may go elsewhere instead of waiting for it.", [
  "never",
  "after_wait",
  "cheaper",
]);
const BURST_APPROVALS = closed("PoolBurstApproval", "Who agrees to work going elsewhere.", [
  "auto",
  "above_threshold",
  "always",
]);
const BURST_TIMEOUT_BEHAVIOURS = closed(
  "PoolBurstTimeoutBehaviour",
  "What becomes of work whose proposal nobody answered.",
  ["keep_waiting", "cancel"],
);

@entity(
  "pools",
  "pool",
  "Machines of a team's own. A new pool is measured, free of charge; forecasts and placement are switched on apart.",
)
@Index({ name: "pool_tenant", properties: ["tenantId", "id"] })
export class Pool {
  @attr.id("The pool's id.") id!: string;
  @column.text() tenantId!: string;
  @attr.text("What people call the pool.") name!: string;
  @attr.text("What the pool is made of; `hosts`.") kind!: string;
  @attr.text("`active` while the pool takes part in anything.") state!: string;
  @attr.oneOf(WAIT_POLICIES, "When work for this pool may go elsewhere.") waitPolicy!: (typeof WAIT_POLICIES)[number];
  @attr.oneOf(BURST_APPROVALS, "Who agrees to that.") burstApproval!: (typeof BURST_APPROVALS)[number];
  @attr.oneOf(BURST_TIMEOUT_BEHAVIOURS, "What happens when nobody answers.")
  burstTimeoutBehaviour!: (typeof BURST_TIMEOUT_BEHAVIOURS)[number];
  @attr.flag("Demand is forecast, for a monthly fee.") predictEnabled!: boolean;
  @attr.flag("Work is placed on the pool, for a fee by device and hour.") routeEnabled!: boolean;
  @attr.flag("Sandboxes can run on the pool.") sandboxCapable!: boolean;
  @attr.float("How much longer than expected work may wait, as a factor.") waitAlpha!: number;
  @attr.float("How much of a run's limit may go into waiting, in percent.") waitingBudgetPct!: number;
  // Rates and thresholds of pools are agreed upon in micro-dollars, to the last one, and shown so.
  @Field(() => SafeInt, { description: "From which cost on approval is needed, in micro-dollars.", simple: true })
  @column.count()
  burstThresholdMicros!: number;
  @Field(() => SafeInt, {
    description: "The accepted fee by device and hour, in micro-dollars; 0 until one was.",
    simple: true,
  })
  @column.count()
  platformRateMicros!: number;
  @Field(() => SafeInt, {
    description: "What the machines cost their owner an hour, in micro-dollars. For comparisons, never charged.",
    simple: true,
  })
  @column.count()
  ownedCostMicrosPerHour!: number;
  @attr.at("When it was made.") createdAt!: Date;
  @attr.at("When a setting last changed.") updatedAt!: Date;
}
