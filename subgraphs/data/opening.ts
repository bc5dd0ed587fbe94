import * as graphql from "../../infra/graphql/opening.ts";
import type { DataContext } from "./data-context.ts";

/** Opens a subscription of data. */
export function opening<Args, Item>(
  open: (args: Args, context: DataContext) => AsyncIterable<Item> | Promise<AsyncIterable<Item>>,
) {
  return graphql.opening<Args, DataContext, Item>(open);
}
