import { Ctx, FieldResolver, Float, GraphQLISODateTime, Int, Resolver, Root } from "type-graphql";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { Json, SafeInt } from "../../../infra/graphql/scalars.ts";
import type { ComputeContext } from "../compute-context.ts";
import { Workload } from "../workload/workload.entity.ts";
import { Placement } from "./placement.entity.ts";
import { placementOf, placementsOf } from "./placement.reads.ts";
import { type PlacementFigures, placementFigures } from "./placement-figures.ts";
import { fitClass, routeDocument } from "./route.ts";

@Resolver(() => Workload)
export class WorkloadPlacementsResolver {
  @FieldResolver(() => [Placement], { description: "Where it ran: every generation by stage id, then number." })
  placements(@Root() workload: Workload, @Ctx() context: ComputeContext): Promise<Placement[]> {
    return placementsOf(context, workload.id);
  }

  @FieldResolver(() => Json, {
    nullable: true,
    description: "The capacity chosen last, as the REST face shows it; null before one was chosen.",
  })
  async route(@Root() workload: Workload, @Ctx() context: ComputeContext): Promise<object | null> {
    const placements = await placementsOf(context, workload.id);
    const latest = placements.reduce<Placement | null>((a, b) => (a && a.createdAt > b.createdAt ? a : b), null);
    if (!latest) return null;
    const figures = await figuresOf(context, latest.id);
    return routeDocument(workload, latest, placements, figures, context.clock.now());
  }
}

@Resolver(() => Placement)
export class PlacementResolver {
  @FieldResolver(() => String, { description: "How the capacity fits what was asked for, in a word." })
  fitClass(@Root() placement: Placement): string {
    return fitClass(placement);
  }

  @FieldResolver(() => String, { description: "`pool` for a team's own capacity, `market` for any other." })
  async origin(@Root() placement: Placement, @Ctx() context: ComputeContext): Promise<string> {
    return (await figuresOf(context, placement.id)).inPool ? "pool" : "market";
  }

  @FieldResolver(() => String, { description: "Continuity mode in force." })
  async continuityMode(@Root() placement: Placement, @Ctx() context: ComputeContext): Promise<string> {
    return (await figuresOf(context, placement.id)).continuityMode;
  }

  @FieldResolver(() => Float, { nullable: true, description: "Seconds from the first order to the running command." })
  bootSeconds(@Root() { runningAt, provisionedAt }: Placement): number | null {
    return runningAt ? (runningAt.getTime() - provisionedAt.getTime()) / 1000 : null;
  }

  @FieldResolver(() => Boolean, { nullable: true, description: "The command got to run; null while that is open." })
  bootOk(@Root() { runningAt, state }: Placement): boolean | null {
    if (runningAt) return true;
    return state === "provisioning" ? null : false;
  }

  @FieldResolver(() => Float, { nullable: true, description: "Running time in hours; null until it ended." })
  actualHours(@Root() { ranMs }: Placement): number | null {
    return ranMs === null ? null : ranMs / 3_600_000;
  }

  @FieldResolver(() => GraphQLISODateTime, {
    nullable: true,
    description: "When it was interrupted; null when it was not.",
  })
  interruptedAt(@Root() { interruptTrigger, endedAt }: Placement): Date | null {
    return interruptTrigger === null ? null : endedAt;
  }

  @FieldResolver(() => Float, {
    nullable: true,
    description: "Seconds from its interruption to the next generation's running command; null where there is none.",
  })
  async recoverySeconds(@Root() placement: Placement, @Ctx() context: ComputeContext): Promise<number | null> {
    const { stageRunId, generation, interruptTrigger, endedAt, workloadId } = placement;
    if (interruptTrigger === null || endedAt === null) return null;
    const all = await placementsOf(context, workloadId);
    const next = all.find((p) => p.stageRunId === stageRunId && p.generation > generation && p.runningAt !== null);
    return next ? (next.runningAt!.getTime() - endedAt.getTime()) / 1000 : null;
  }

  @FieldResolver(() => Int, { description: "Checkpoints that it saved." })
  async checkpoints(@Root() placement: Placement, @Ctx() context: ComputeContext): Promise<number> {
    return (await figuresOf(context, placement.id)).checkpoints;
  }

  @FieldResolver(() => SafeInt, { description: "Bytes of its checkpoints." })
  async checkpointBytes(@Root() placement: Placement, @Ctx() context: ComputeContext): Promise<number> {
    return (await figuresOf(context, placement.id)).checkpointBytes;
  }

  @FieldResolver(() => SafeInt, { description: "Bytes of its results." })
  async outputBytes(@Root() placement: Placement, @Ctx() context: ComputeContext): Promise<number> {
    return (await figuresOf(context, placement.id)).outputBytes;
  }
}

function figuresOf(context: ComputeContext, placementId: string): Promise<PlacementFigures> {
  return context
    .loader<string, PlacementFigures>("placementFigures", (ids) =>
      placementFigures(context.db, actorOf(context).tenantId, ids),
    )
    .load(placementId);
}

/** A placement of the caller's team; null for anything else. */
export function placementReference(reference: { id: string }, context: GraphContext): Promise<Placement | null> {
  return placementOf(context, reference.id);
}
