import { asRefusal } from "./errors.ts";

/** What a subscription is opened with. */
interface Opening<Args, Context> {
  args: Args;
  context: Context;
}

/** Opens a subscription: middleware reaches neither `subscribe` nor what its stream ends with, so both are translated here. */
export function opening<Args, Context, Item>(
  open: (args: Args, context: Context) => AsyncIterable<Item> | Promise<AsyncIterable<Item>>,
) {
  return async ({ args, context }: Opening<Args, Context>): Promise<AsyncIterable<Item>> => {
    try {
      return translated(await open(args, context));
    } catch (error) {
      throw asRefusal(error);
    }
  };
}

/** The same items; a stream that ends with a refusal, or for the want of a database, says so. */
function translated<Item>(source: AsyncIterable<Item>): AsyncIterableIterator<Item> {
  const items = source[Symbol.asyncIterator]();
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: async () => {
      try {
        return await items.next();
      } catch (error) {
        throw asRefusal(error);
      }
    },
    // The end of whoever reads is the end of the source, at once.
    return: async () => (await items.return?.()) ?? { done: true, value: undefined },
    throw: async (error) => {
      await items.return?.();
      throw error;
    },
  };
}
