import type { GraphContext } from "../../../infra/graphql/context.ts";
import { hangingOn } from "../workload/workload.reads.ts";
import { Stage } from "./stage.entity.ts";

/** The stages of a workload in their order. */
export function stagesOf(context: GraphContext, workloadId: string): Promise<Stage[]> {
  return hangingOn(context, workloadId, { name: "stages", type: Stage, tail: "order by t.position" });
}
