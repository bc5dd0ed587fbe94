import { Ctx, FieldResolver, Resolver, Root } from "type-graphql";
import type { ComputeContext } from "../compute-context.ts";
import { Stage } from "../stage/stage.entity.ts";
import { Workload } from "../workload/workload.entity.ts";
import { hangingOn } from "../workload/workload.reads.ts";
import { Manifest } from "./manifest.entity.ts";

@Resolver(() => Workload)
export class WorkloadCheckpointsResolver {
  @FieldResolver(() => [Manifest], { description: "What its generations saved, oldest first." })
  artifacts(@Root() workload: Workload, @Ctx() context: ComputeContext): Promise<Manifest[]> {
    return manifestsOf(context, workload.id);
  }

  @FieldResolver(() => Manifest, { nullable: true, description: "The latest point that it could go on from." })
  async latestCheckpoint(@Root() workload: Workload, @Ctx() context: ComputeContext): Promise<Manifest | null> {
    return latestUseful(await manifestsOf(context, workload.id));
  }
}

@Resolver(() => Stage)
export class StageCheckpointsResolver {
  @FieldResolver(() => Manifest, { nullable: true, description: "The latest point that the stage could go on from." })
  async latestManifest(@Root() stage: Stage, @Ctx() context: ComputeContext): Promise<Manifest | null> {
    const manifests = await manifestsOf(context, stage.workloadId);
    return latestUseful(manifests.filter((m) => m.stageId === stage.stageId));
  }
}

function manifestsOf(context: ComputeContext, workloadId: string): Promise<Manifest[]> {
  return hangingOn(context, workloadId, {
    name: "manifests",
    type: Manifest,
    tail: "order by t.created_at, t.generation, t.sequence",
  });
}

/** A manifest without files holds results at most: nothing to go on from. */
function latestUseful(manifests: readonly Manifest[]): Manifest | null {
  return manifests.findLast((m) => Array.isArray(m.manifest.files) && m.manifest.files.length > 0) ?? null;
}
