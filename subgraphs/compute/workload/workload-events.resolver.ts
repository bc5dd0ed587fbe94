import { Arg, Ctx, FieldResolver, ID, Int, Resolver, Root, Subscription } from "type-graphql";
import { actorOf } from "../../../infra/graphql/context.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import type { ComputeContext } from "../compute-context.ts";
import { opening } from "../opening.ts";
import { Workload } from "./workload.entity.ts";
import { hangingOn } from "./workload.reads.ts";
import { WorkloadEvent } from "./workload-event.entity.ts";
import { followEvents, WorkloadEventItem } from "./workload-event-stream.ts";

const AFTER = { nullable: true, description: "Go on after the event of this number; from the first one unless given." };

@Resolver(() => Workload)
export class WorkloadEventsResolver {
  @FieldResolver(() => [WorkloadEvent], { description: "What happened to it, in order." })
  events(
    @Root() workload: Workload,
    @Ctx() context: ComputeContext,
    @Arg("after", () => Int, AFTER) after: number | null,
    @Arg("first", () => Int, { nullable: true, description: "How many at most; 100 unless given, and never more." })
    first: number | null,
  ): Promise<WorkloadEvent[]> {
    const from = requireCursor(after);
    const count = requireCount(first);
    // Numbers have no gaps, so a window of numbers is a page for each workload.
    return hangingOn(context, workload.id, {
      name: `workloadEvents:${from}:${count}`,
      type: WorkloadEvent,
      tail: "and t.seq > $3 and t.seq <= $4 order by t.seq",
      values: [from, Math.min(from + count, MAX_CURSOR)],
    });
  }

  @Subscription(() => WorkloadEventItem, {
    description: "A workload's events after a cursor and then as they happen, until it is over and settled.",
    subscribe: opening<{ workloadId: string; after: number | null }, WorkloadEventItem>((args, context) => {
      const { tenantId } = actorOf(context, "workloads:read");
      return followEvents(context, { tenantId, workloadId: args.workloadId, after: requireCursor(args.after) });
    }),
  })
  workloadEvents(
    @Root() item: WorkloadEventItem,
    @Arg("workloadId", () => ID, { description: "The workload." }) _workloadId: string,
    @Arg("after", () => Int, AFTER) _after: number | null,
  ): WorkloadEventItem {
    return item;
  }
}

const MAX_CURSOR = 2 ** 31 - 1;

function requireCursor(after: number | null | undefined): number {
  if (after === null || after === undefined) return 0;
  if (after < 0) throw new Refused(COMMON.invalid_cursor, { field: "/after" });
  return after;
}

function requireCount(first: number | null | undefined): number {
  if (first === null || first === undefined) return LIMITS.eventPage;
  if (first < 1 || first > LIMITS.eventPage)
    throw new Refused(COMMON.invalid_limit, {
      field: "/first",
      message: `first must be a whole number from 1 to ${LIMITS.eventPage}.`,
    });
  return first;
}
