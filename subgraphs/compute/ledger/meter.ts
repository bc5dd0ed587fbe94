import { Field, GraphQLISODateTime, ObjectType } from "type-graphql";
import type { Queryer } from "../../../infra/db/database.ts";
import { Usd } from "../../../infra/graphql/scalars.ts";
import type { Micros } from "../../../infra/kernel/micros.ts";
import type { Placement } from "../placement/placement.entity.ts";
import type { Workload } from "../workload/workload.entity.ts";
import { type Charge, cappedCharge, chargeFor, hourlyMicros } from "./price.ts";

@ObjectType({ description: "What a workload has cost and is costing, as of one moment." })
export class Meter {
  @Field(() => Usd, { description: "Charged.", simple: true }) settledUsd!: Micros;
  @Field(() => Usd, { description: "Used and not charged yet.", simple: true }) accruingUsd!: Micros;
  @Field(() => Usd, { description: "What running costs an hour now, fee included.", simple: true })
  accruingRateUsdHour!: Micros;
  @Field(() => Usd, { description: "Charged and used together.", simple: true }) totalNowUsd!: Micros;
  @Field(() => GraphQLISODateTime, { description: "The moment.", simple: true }) asOf!: Date;
  @Field(() => Usd, { description: "The capacity's part of what was charged.", simple: true })
  computeSettledUsd!: Micros;
  @Field(() => Usd, { description: "The platform's fee in what was charged.", simple: true })
  platformFeeSettledUsd!: Micros;
  @Field(() => Usd, {
    description: "Subscriptions in what was charged; none of a workload's charges is one.",
    simple: true,
  })
  subscriptionSettledUsd!: Micros;
  @Field(() => Usd, { description: "The capacity's part of what is used.", simple: true }) computeAccruingUsd!: Micros;
  @Field(() => Usd, { description: "The platform's fee on what is used.", simple: true })
  platformFeeAccruingUsd!: Micros;
}

/** The figures of placements that a meter needs. */
export type MeteredPlacement = Pick<
  Placement,
  "state" | "runningAt" | "ranMs" | "heldMicros" | "rateMicrosPerHour" | "feeBasisPoints"
>;

/** What a placement has used and was not charged for, never more than it may cost. */
export function accruedCharge(placement: MeteredPlacement, now: Date): Charge {
  const ms = placement.state === "closed" ? 0 : usedMs(placement, now);
  return cappedCharge(chargeFor(placement, ms), placement.heldMicros);
}

function usedMs({ ranMs, runningAt }: MeteredPlacement, now: Date): number {
  if (ranMs !== null) return ranMs;
  return runningAt ? Math.max(0, now.getTime() - runningAt.getTime()) : 0;
}

/**
 * Reads a meter from what was posted and what is under way.
 * @param feeMicros the platform's part of what was posted
 */
export function meterOf(
  spendMicros: Micros,
  feeMicros: Micros,
  placements: readonly MeteredPlacement[],
  now: Date,
): Meter {
  const accrued = placements.map((placement) => accruedCharge(placement, now));
  const running = placements.filter((placement) => placement.state === "running");
  const accruingUsd = sum(accrued.map((charge) => charge.totalMicros));
  return {
    settledUsd: spendMicros,
    accruingUsd,
    accruingRateUsdHour: sum(running.map(hourlyMicros)),
    totalNowUsd: spendMicros + accruingUsd,
    asOf: now,
    computeSettledUsd: spendMicros - feeMicros,
    platformFeeSettledUsd: feeMicros,
    subscriptionSettledUsd: 0n,
    computeAccruingUsd: sum(accrued.map((charge) => charge.computeMicros)),
    platformFeeAccruingUsd: sum(accrued.map((charge) => charge.feeMicros)),
  };
}

function sum(amounts: readonly Micros[]): Micros {
  return amounts.reduce((total, amount) => total + amount, 0n);
}

/** The platform's fee in what was posted for each subject, in micros; nothing is read for those that were not charged. */
export async function postedFees(
  q: Queryer,
  tenantId: string,
  workloads: readonly Workload[],
): Promise<Map<string, Micros>> {
  const charged = workloads.filter((w) => w.spendMicros > 0n).map((w) => w.id);
  if (charged.length === 0) return new Map();
  const rows = await q.sql<{ subject_id: string; micros: Micros }>(
    `select subject_id, (sum(credit_micros) - sum(debit_micros))::bigint as micros from compute.ledger_entry
     where tenant_id = $1 and subject_id = any($2) and account = 'platform_fee_revenue' group by subject_id`,
    [tenantId, charged],
  );
  return new Map(rows.map((row) => [row.subject_id, row.micros]));
}
