import { Ctx, Field, FieldResolver, GraphQLISODateTime, ID, ObjectType, Resolver, Root } from "type-graphql";
import { actorOf } from "../../../infra/graphql/context.ts";
import { Usd } from "../../../infra/graphql/scalars.ts";
import type { Micros } from "../../../infra/kernel/micros.ts";
import type { ComputeContext } from "../compute-context.ts";
import { placementsOf } from "../placement/placement.reads.ts";
import { Workload } from "../workload/workload.entity.ts";
import { LedgerEntry } from "./ledger-entry.entity.ts";
import { Meter, meterOf, postedFees } from "./meter.ts";

@ObjectType({ description: "Whether everything that a workload used has been charged." })
export class Settlement {
  @Field(() => String, { description: "`settled` once nothing more will be charged, `open` before.", simple: true })
  status!: string;
  @Field(() => Usd, {
    description: "Credits less debits of the entries: zero unless the books are wrong.",
    simple: true,
  })
  balanceUsd!: Micros;
  @Field(() => ID, { description: "The workload's id, which the books know it by.", simple: true })
  correlationId!: string;
  @Field(() => GraphQLISODateTime, { nullable: true, description: "When it was settled.", simple: true })
  closedAt!: Date | null;
}

@ObjectType({ description: "What was posted for a workload. The charge is the sum of the `customer_charge` credits." })
export class Ledger {
  @Field(() => [LedgerEntry], { description: "The entries, oldest first.", simple: true }) entries!: LedgerEntry[];
  @Field(() => Settlement, { description: "Whether more is to come.", simple: true }) settlement!: Settlement;
}

@Resolver(() => Workload)
export class WorkloadMoneyResolver {
  @FieldResolver(() => Meter, { description: "What it has cost and is costing now." })
  meter(@Root() workload: Workload, @Ctx() context: ComputeContext): Promise<Meter> {
    return context
      .loader<Workload, Meter>("meter", async (workloads) => {
        const now = context.clock.now();
        const [fees, placements] = await Promise.all([
          postedFees(context.db, actorOf(context).tenantId, workloads),
          Promise.all(workloads.map((w) => placementsOf(context, w.id))),
        ]);
        return workloads.map((w, i) => meterOf(w.spendMicros, fees.get(w.id) ?? 0n, placements[i]!, now));
      })
      .load(workload);
  }

  @FieldResolver(() => Ledger, { description: "What was posted for it." })
  async ledger(@Root() workload: Workload, @Ctx() context: ComputeContext): Promise<Ledger> {
    const entries = await entriesOf(context, workload);
    return {
      entries,
      settlement: {
        status: workload.settledAt ? "settled" : "open",
        balanceUsd: entries.reduce((sum, e) => sum + e.creditMicros - e.debitMicros, 0n),
        correlationId: workload.id,
        closedAt: workload.settledAt,
      },
    };
  }
}

@Resolver(() => LedgerEntry)
export class LedgerEntryResolver {
  @FieldResolver(() => String, { description: "Currency of both amounts." })
  currency(): string {
    return "USD";
  }
}

/** What a customer may see: the operator's own losses and costs are not among it. */
function entriesOf(context: ComputeContext, workload: Workload): Promise<LedgerEntry[]> {
  return context
    .loader<string, LedgerEntry[]>("ledgerEntries", async (ids) => {
      const rows = await context.db.rows(
        LedgerEntry,
        `where t.tenant_id = $1 and t.subject_id = any($2) and t.account not in ('operator_loss', 'supplier_cost')
         order by t.id`,
        [actorOf(context).tenantId, ids],
      );
      return ids.map((id) => rows.filter((row) => row.subjectId === id));
    })
    .load(workload.id);
}
