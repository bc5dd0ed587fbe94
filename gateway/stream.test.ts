import { getEventListeners } from "node:events";
import { OperationTypeNode, parse } from "graphql";
import { describe, expect, it } from "vitest";
import { BoundedMap } from "./bounded-map.ts";
import { withDeadline } from "./executors/deadline.ts";
import { endable, lastOnError, mapStream } from "./stream.ts";

/** A source that speaks when told to, and knows whether it was closed. */
function source<T>() {
  const waiting: { resolve(item: IteratorResult<T>): void; reject(error: Error): void }[] = [];
  const ready: IteratorResult<T>[] = [];
  let closed = 0;
  const iterator = {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () =>
      ready.length > 0
        ? Promise.resolve(ready.shift()!)
        : new Promise<IteratorResult<T>>((resolve, reject) => void waiting.push({ resolve, reject })),
    return: async (): Promise<IteratorResult<T>> => {
      closed++;
      for (const { resolve } of waiting.splice(0)) resolve({ done: true, value: undefined });
      return { done: true, value: undefined };
    },
  };
  const say = (item: IteratorResult<T>) =>
    waiting.length > 0 ? waiting.shift()!.resolve(item) : void ready.push(item);
  return {
    iterator,
    give: (value: T) => say({ done: false, value }),
    finish: () => say({ done: true, value: undefined }),
    fail: (error: Error) => waiting.shift()!.reject(error),
    closed: () => closed,
  };
}

const DONE = { done: true, value: undefined };

describe("a mapped stream", () => {
  it("closes a silent source at once", async () => {
    const { iterator, closed } = source<number>();
    const stream = mapStream(iterator, (n) => n);
    const waiting = stream.next();
    await stream.return();
    expect([await waiting, closed()]).toEqual([DONE, 1]);
  });

  it("gives items in the order of the calls, however long mapping takes", async () => {
    const { iterator, give } = source<number>();
    const stream = mapStream(iterator, async (n) => {
      await new Promise((resolve) => setTimeout(resolve, n));
      return n;
    });
    give(20);
    give(1);
    expect((await Promise.all([stream.next(), stream.next()])).map((r) => r.value)).toEqual([20, 1]);
  });

  it("ends once, and closes the source when mapping fails", async () => {
    const { iterator, give, closed } = source<number>();
    let ends = 0;
    const stream = mapStream(
      iterator,
      () => {
        throw new Error("no");
      },
      () => ends++,
    );
    give(1);
    await expect(stream.next()).rejects.toThrow("no");
    expect([await stream.next(), await stream.return(), closed(), ends]).toEqual([DONE, DONE, 1, 1]);
  });
});

describe("an endable stream", () => {
  it("answers a waiting reader with the last item, and frees the source", async () => {
    const { iterator, closed } = source<string>();
    const stream = endable(iterator);
    const waiting = stream.next();
    stream.end("bye");
    expect([await waiting, await stream.next(), closed()]).toEqual([{ done: false, value: "bye" }, DONE, 1]);
  });

  it("gives the last item to a reader that comes later, and hears no second end", async () => {
    const { iterator } = source<string>();
    let ends = 0;
    const stream = endable(iterator, () => ends++);
    stream.end("bye");
    stream.end("again");
    expect([await stream.next(), await stream.next(), ends]).toEqual([{ done: false, value: "bye" }, DONE, 1]);
  });

  it("lets a reader go in mid-wait", async () => {
    const { iterator, closed } = source<string>();
    const stream = endable(iterator);
    const waiting = stream.next();
    await stream.return();
    stream.end("too late");
    expect([await waiting, await stream.next(), closed()]).toEqual([DONE, DONE, 1]);
  });
});

it("says the failure of a source in a last item, then ends", async () => {
  const { iterator, fail } = source<string>();
  const stream = lastOnError(
    mapStream(iterator, (s) => s),
    (error) => (error as Error).message,
  );
  const waiting = stream.next();
  await Promise.resolve();
  fail(new Error("broke"));
  expect([await waiting, await stream.next()]).toEqual([{ done: false, value: "broke" }, DONE]);
});

describe("a deadline", () => {
  const request = (signal: AbortSignal) => ({
    document: parse("{ a }"),
    operationType: OperationTypeNode.QUERY,
    variables: {},
    actor: null,
    requestId: "r",
    signal,
  });

  it("leaves nothing behind on a signal that outlives many requests", async () => {
    const caller = new AbortController();
    const executor = { name: "s", execute: async () => ({ data: {} }) };
    for (let i = 0; i < 1_000; i++) await withDeadline(executor, request(caller.signal), 60_000);
    expect(getEventListeners(caller.signal, "abort")).toHaveLength(0);
  });

  it("tells the subgraph when the caller has gone", async () => {
    const caller = new AbortController();
    const executor = {
      name: "s",
      execute: ({ signal }: { signal?: AbortSignal }) =>
        new Promise<never>((_, reject) => signal!.addEventListener("abort", () => reject(new Error("gone")))),
    };
    const answer = withDeadline(executor, request(caller.signal), 60_000);
    caller.abort();
    await expect(answer).rejects.toThrow("gone");
  });

  it("closes a stream that opens after it", async () => {
    const { iterator, closed } = source<never>();
    let open: (stream: typeof iterator) => void = () => {};
    const late = new Promise<typeof iterator>((resolve) => {
      open = resolve;
    });
    await expect(
      withDeadline({ name: "s", execute: () => late }, request(new AbortController().signal), 1),
    ).rejects.toMatchObject({ kind: { code: "subgraph_timeout" } });
    open(iterator);
    await late;
    await Promise.resolve();
    expect(closed()).toBe(1);
  });
});

it("a bounded map forgets what was unused for longest", () => {
  const map = new BoundedMap<string, number>(2);
  map.set("a", 1);
  map.set("b", 2);
  map.get("a");
  map.set("c", 3);
  expect([map.get("a"), map.get("b"), map.get("c"), map.size]).toEqual([1, undefined, 3, 2]);
});
