import type { GraphContext } from "../../infra/graphql/context.ts";
import type { WorkloadPort } from "../compute/published.ts";

/** What the resolvers of rl need beyond the common context; the composition root adds it to every request. */
export interface RlContext extends GraphContext {
  readonly rl: { readonly workloads: WorkloadPort };
}
