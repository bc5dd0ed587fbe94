import { type Reference, type Subgraph, subgraph } from "../../infra/graphql/subgraph.ts";
import { RlOfWorkloadResolver, WorkloadStub } from "./event/rl-event.resolver.ts";
import { RlRecipeResolver, recipeReference } from "./recipe/recipe.resolver.ts";
import { RlRecipe } from "./recipe/recipe.ts";

export const resolvers = [RlRecipeResolver, RlOfWorkloadResolver];

export const references: [typeof RlRecipe | typeof WorkloadStub, Reference][] = [
  [RlRecipe, recipeReference],
  [WorkloadStub, ({ id }) => ({ id })],
];

/** The part of the graph about RL runs and their evidence. Its context is an `RlContext`. */
export function buildRlSubgraph(): Subgraph {
  return subgraph("rl", resolvers, references);
}
