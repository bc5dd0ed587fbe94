import { asRefusal } from "../../infra/graphql/errors.ts";
import type { ComputeContext } from "./compute-context.ts";

interface Opening<Args> {
  args: Args;
  context: ComputeContext;
}

/** Opens a subscription: middleware does not reach `subscribe`, so refusals are translated here. */
export function opening<Args, Item>(
  open: (args: Args, context: ComputeContext) => AsyncIterable<Item> | Promise<AsyncIterable<Item>>,
) {
  return async ({ args, context }: Opening<Args>): Promise<AsyncIterable<Item>> => {
    try {
      return await open(args, context);
    } catch (error) {
      throw asRefusal(error);
    }
  };
}
