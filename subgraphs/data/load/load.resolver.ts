import { Arg, Ctx, Field, FieldResolver, ID, InputType, Mutation, ObjectType, Resolver, Root } from "type-graphql";
import { actorOf } from "../../../infra/graphql/context.ts";
import type { DataContext } from "../data-context.ts";
import { SinkLoad } from "./load.entity.ts";
import { reloadOutput } from "./reload-output.ts";

@InputType({ description: "An output to load into its table again." })
export class ReloadOutputInput {
  @Field(() => ID, { description: "The workload." }) workloadId!: string;
  @Field(() => String, { description: "Name of the output." }) name!: string;
  @Field(() => String, { nullable: true, description: "The stage; needed where several have an output of the name." })
  stageId?: string | null;
}

@ObjectType({ description: "The load of the output." })
export class ReloadOutputPayload {
  @Field(() => SinkLoad, { description: "The load, waiting or running.", simple: true }) load!: SinkLoad;
}

@Resolver(() => SinkLoad)
export class SinkLoadResolver {
  @Mutation(() => ReloadOutputPayload, {
    description:
      "Loads the latest saved output of a name into its table again, with the credential that was pinned at admission. A load that waits or runs already is answered instead.",
  })
  async reloadOutput(
    @Arg("input", () => ReloadOutputInput, { description: "The output." }) input: ReloadOutputInput,
    @Ctx() context: DataContext,
  ): Promise<ReloadOutputPayload> {
    const { db, clock, data } = context;
    const actor = actorOf(context, "workloads:write");
    const ask = { workloadId: input.workloadId, name: input.name, stageId: input.stageId ?? null };
    return { load: await reloadOutput({ db, results: data.results }, actor, ask, clock.now()) };
  }

  @FieldResolver(() => String, {
    nullable: true,
    description: "What the load waits for; null while it waits for nothing.",
  })
  waitingReason(@Root() { state }: SinkLoad): string | null {
    return state === "pending" ? "It waits for a worker, or for the end of other loads of the team." : null;
  }
}
