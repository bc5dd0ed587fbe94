import { Ctx, FieldResolver, Resolver, Root } from "type-graphql";
import type { ComputeContext } from "../compute-context.ts";
import { Placement } from "../placement/placement.entity.ts";
import { placementsOf } from "../placement/placement.reads.ts";
import { Workload } from "../workload/workload.entity.ts";
import { Stage } from "./stage.entity.ts";
import { stagesOf } from "./stage.reads.ts";

@Resolver(() => Workload)
export class WorkloadStagesResolver {
  @FieldResolver(() => [Stage], { description: "Its steps, in the order in which they run." })
  stages(@Root() workload: Workload, @Ctx() context: ComputeContext): Promise<Stage[]> {
    return stagesOf(context, workload.id);
  }
}

@Resolver(() => Stage)
export class StageResolver {
  @FieldResolver(() => [Placement], { description: "Its generations, oldest first." })
  async placements(@Root() stage: Stage, @Ctx() context: ComputeContext): Promise<Placement[]> {
    const placements = await placementsOf(context, stage.workloadId);
    return placements.filter((placement) => placement.stageRunId === stage.id);
  }
}
