import { Arg, Ctx, Query, Resolver } from "type-graphql";
import { connectionOf, FIRST, type Page, page, pageSize } from "../../../infra/graphql/connection.ts";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { RECIPES, RlRecipe } from "./recipe.ts";

const RlRecipeConnection = connectionOf(RlRecipe, "RlRecipe");

@Resolver(() => RlRecipe)
export class RlRecipeResolver {
  @Query(() => RlRecipeConnection, { description: "The recipes of this release, and whether they can be run here." })
  rlRecipes(
    @Ctx() context: GraphContext,
    @Arg("first", FIRST.type, FIRST.options) first: number | null,
    @Arg("after", () => String, { nullable: true, description: "Go on after this cursor." }) after: string | null,
  ): Promise<Page<RlRecipe>> {
    actorOf(context, "workloads:read");
    return page<RlRecipe>({
      list: "rlRecipes",
      first: pageSize(first),
      after,
      keyLength: 2,
      keyOf: (r) => [r.id, r.version],
      read: async (key, limit) => RECIPES.filter((r) => !key || isAfter(r, key)).slice(0, limit),
    });
  }
}

function isAfter(recipe: RlRecipe, [id, version]: (string | number)[]): boolean {
  return recipe.id === id ? recipe.version > String(version) : recipe.id > String(id);
}

/** A recipe by id and version; null when this release has not got it. */
export function recipeReference(reference: { id: string }): RlRecipe | null {
  const { id, version } = reference as { id: string; version?: string };
  return RECIPES.find((r) => r.id === id && r.version === version) ?? null;
}
