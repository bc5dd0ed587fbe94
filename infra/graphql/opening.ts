import { asRefusal } from "./errors.ts";

/** What a subscription is opened with. */
interface Opening<Args, Context> {
  args: Args;
  context: Context;
}

/** Opens a subscription: middleware does not reach `subscribe`, so refusals are translated here. */
export function opening<Args, Context, Item>(
  open: (args: Args, context: Context) => AsyncIterable<Item> | Promise<AsyncIterable<Item>>,
) {
  return async ({ args, context }: Opening<Args, Context>): Promise<AsyncIterable<Item>> => {
    try {
      return await open(args, context);
    } catch (error) {
      throw asRefusal(error);
    }
  };
}
