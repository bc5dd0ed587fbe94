import * as graphql from "../../infra/graphql/opening.ts";
import type { ComputeContext } from "./compute-context.ts";

/** Opens a subscription of compute. */
export function opening<Args, Item>(
  open: (args: Args, context: ComputeContext) => AsyncIterable<Item> | Promise<AsyncIterable<Item>>,
) {
  return graphql.opening<Args, ComputeContext, Item>(open);
}
