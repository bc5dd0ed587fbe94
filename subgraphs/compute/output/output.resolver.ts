import { Arg, Ctx, Field, FieldResolver, Float, ObjectType, Resolver, Root } from "type-graphql";
import { actorOf } from "../../../infra/graphql/context.ts";
import { SafeInt, Usd } from "../../../infra/graphql/scalars.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { Micros } from "../../../infra/kernel/micros.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { OutputLoad } from "../../data/published.ts";
import type { ComputeContext } from "../compute-context.ts";
import { isReservedOutputName } from "../workload/validate/names.ts";
import { Workload } from "../workload/workload.entity.ts";
import { hangingOn } from "../workload/workload.reads.ts";
import { WORKLOAD } from "../workload/workload.refusals.ts";
import { Output } from "./output.entity.ts";
import { type UnitFigures, unitFigures } from "./unit-figures.ts";

@ObjectType({ description: "How the work units of a workload went. What was not observed is null, never zero." })
export class UnitMetrics {
  @Field(() => SafeInt, { description: "Units reported done, each id once.", simple: true }) unitsCompleted!: number;
  @Field(() => Float, { nullable: true, description: "Median time of a unit in milliseconds.", simple: true })
  p50Ms!: number | null;
  @Field(() => Float, {
    nullable: true,
    description: "Time that 95 % of the units stayed below, in milliseconds.",
    simple: true,
  })
  p95Ms!: number | null;
  @Field(() => Usd, {
    nullable: true,
    description: "What was charged so far, divided by the units; rounded down.",
    simple: true,
  })
  costPerUnitUsd!: Micros | null;
  @Field(() => SafeInt, { description: "Reports that were lost; above zero the figures are incomplete.", simple: true })
  droppedObservations!: number;
}

@Resolver(() => Workload)
export class WorkloadOutputsResolver {
  @FieldResolver(() => [Output], { description: "Results of its completed stages." })
  outputs(@Root() workload: Workload, @Ctx() context: ComputeContext): Promise<Output[]> {
    return outputsOf(context, workload.id);
  }

  @FieldResolver(() => Output, { description: "One result. Refused when there is none, or several of that name." })
  async output(
    @Root() workload: Workload,
    @Ctx() context: ComputeContext,
    @Arg("name", () => String, { description: "The result's name." }) name: string,
    @Arg("stageId", () => String, { nullable: true, description: "The stage; needed where several have the name." })
    stageId: string | null,
  ): Promise<Output> {
    const named = (await outputsOf(context, workload.id)).filter((o) => o.name === name);
    const found = stageId ? named.filter((o) => o.stageId === stageId) : named;
    if (found.length > 1) {
      const stages = found.map((o) => o.stageId);
      throw new Refused(WORKLOAD.ambiguous_output, { field: "/stage", extra: { stages } });
    }
    const [output] = found;
    if (!output) throw new Refused(WORKLOAD.output_not_found, { field: "/name" });
    if (output.removedAt) throw new Refused(WORKLOAD.output_gone, { field: "/name" });
    return output;
  }

  @FieldResolver(() => String, {
    nullable: true,
    description: "One word on why an output of it could not be loaded into its table; null when none failed.",
  })
  async sinkError(@Root() workload: Workload, @Ctx() context: ComputeContext): Promise<string | null> {
    const loads = await loadsOf(context, workload.id);
    return loads.find((load) => load.state === "failed")?.error ?? null;
  }

  @FieldResolver(() => UnitMetrics, {
    nullable: true,
    description: "How its work units went; null when none was reported.",
  })
  async unitMetrics(@Root() workload: Workload, @Ctx() context: ComputeContext): Promise<UnitMetrics | null> {
    const figures = await context
      .loader<string, UnitFigures>("unitFigures", (ids) => unitFigures(context.db, actorOf(context).tenantId, ids))
      .load(workload.id);
    if (figures.units === 0) return null;
    return {
      unitsCompleted: figures.units,
      p50Ms: figures.p50Ms,
      p95Ms: figures.p95Ms,
      costPerUnitUsd: workload.spendMicros === 0n ? null : workload.spendMicros / BigInt(figures.units),
      droppedObservations: figures.dropped,
    };
  }
}

@Resolver(() => Output)
export class OutputResolver {
  @FieldResolver(() => String, {
    nullable: true,
    description:
      "How loading it into its table stands: `pending`, `loading`, `loaded` or `failed`; null without a table.",
  })
  async sinkState(@Root() output: Output, @Ctx() context: ComputeContext): Promise<string | null> {
    return (await loadOf(context, output))?.state ?? null;
  }

  @FieldResolver(() => SafeInt, { nullable: true, description: "Rows that were loaded; null unless it is loaded." })
  async sinkRows(@Root() output: Output, @Ctx() context: ComputeContext): Promise<number | null> {
    return (await loadOf(context, output))?.rowCount ?? null;
  }

  @FieldResolver(() => String, {
    nullable: true,
    description: "One word on why loading failed, such as `type_mismatch`; null otherwise.",
  })
  async sinkError(@Root() output: Output, @Ctx() context: ComputeContext): Promise<string | null> {
    return (await loadOf(context, output))?.error ?? null;
  }

  @FieldResolver(() => String, { description: "Path below the REST origin that its bytes are read from." })
  download(@Root() output: Output): string {
    const stage = encodeURIComponent(output.stageId);
    return `/v1/workloads/${output.workloadId}/outputs/${encodeURIComponent(output.name)}?stage=${stage}`;
  }

  @FieldResolver(() => String, {
    nullable: true,
    description:
      "A link that reads its bytes from the object store itself for 15 minutes, by whoever has it. Null where objects are files of the platform's host, and once its bytes went.",
  })
  async directUrl(@Root() output: Output, @Ctx() context: ComputeContext): Promise<string | null> {
    if (output.removedAt) return null;
    const terms = { expiresInSeconds: LIMITS.directLinkSeconds, fileName: output.name };
    return (await context.compute.objects.link?.(output.sha256, terms)) ?? null;
  }
}

/** How loading the output into its table stands; null without a table. */
async function loadOf(context: ComputeContext, output: Output): Promise<OutputLoad | null> {
  const loads = await loadsOf(context, output.workloadId);
  const isOf = (load: OutputLoad) => load.stageId === output.stageId && load.name === output.name;
  return loads.find((load) => isOf(load) && load.generation === output.generation) ?? null;
}

/** The loads of a workload's outputs; one statement for all workloads of a request. */
function loadsOf(context: ComputeContext, workloadId: string): Promise<OutputLoad[]> {
  const { tenantId } = actorOf(context, "workloads:read");
  return context
    .loader<string, OutputLoad[]>("sinkLoads", async (ids) => {
      const loads = await context.compute.loads.ofWorkloads(context.db, { tenantId, workloadIds: ids });
      const byWorkload = Map.groupBy(loads, (load) => load.workloadId);
      return ids.map((id) => byWorkload.get(id) ?? []);
    })
    .load(workloadId);
}

/** Results of completed stages, of the generation that completed them, without the runner's own. */
async function outputsOf(context: ComputeContext, workloadId: string): Promise<Output[]> {
  const outputs = await hangingOn(context, workloadId, {
    name: "outputs",
    type: Output,
    join: `join compute.stage s on s.workload_id = t.workload_id and s.stage_id = t.stage_id
      and s.generation = t.generation and s.status = 'completed'`,
    tail: "order by s.position, t.name",
  });
  return outputs.filter((output) => !isReservedOutputName(output.name));
}
