import { Arg, Ctx, Directive, Field, FieldResolver, ID, Int, ObjectType, Resolver, Root } from "type-graphql";
import { pageSize } from "../../../infra/graphql/connection.ts";
import { actorOf } from "../../../infra/graphql/context.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import type { RlContext } from "../rl-context.ts";
import { RlEventPage } from "./rl-event-page.ts";

/** Compute's workload as rl knows it: the key that its own fields hang on. */
@Directive('@key(fields: "id")')
@ObjectType("Workload")
export class WorkloadStub {
  @Field(() => ID, { simple: true }) id!: string;
}

@Resolver(() => WorkloadStub)
export class RlOfWorkloadResolver {
  @FieldResolver(() => RlEventPage, {
    nullable: true, // the workload is another subgraph's, and stays when this one is gone
    description: "RL evidence that the run reported, after a cursor; `not_found` for a foreign workload.",
  })
  async rlEvents(
    @Root() workload: WorkloadStub,
    @Ctx() context: RlContext,
    @Arg("after", () => String, { nullable: true, description: "The cursor of the page before." }) after: string | null,
    @Arg("first", () => Int, { nullable: true, description: "How many rows at most, 1 to 200; 100 unless said." })
    first: number | null,
  ): Promise<RlEventPage> {
    const { tenantId } = actorOf(context, "workloads:read");
    pageSize(first ?? LIMITS.rlEventPageDefault, LIMITS.rlEventPageMax);
    // Nothing is recorded yet, so the only cursor ever handed out is that of the beginning.
    if (after) throw new Refused(COMMON.invalid_cursor, { field: "/after" });
    if (!(await context.rl.workloads.exists(context.db, tenantId, workload.id))) throw new Refused(COMMON.not_found);
    return { schemaVersion: 1, events: [], nextCursor: "", hasMore: false, droppedEvents: 0, truncated: false };
  }
}
