import { parse } from "graphql";
import { expect, it } from "vitest";
import type { SubgraphExecutor, SubgraphRequest } from "../../gateway/request.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { actor, executorsOf, gatewayOver } from "./graph.ts";
import { shop, Ticker } from "./shop.ts";

const QUERY = parse("{ me { name credit } }");

/** A gateway whose people take this long by the clock, and whose orders are `orders`. */
async function gatewayWith(clock: FakeClock, peopleMs: number, orders: SubgraphExecutor["execute"]) {
  const executors = executorsOf(shop()).map(
    ({ name, execute }): SubgraphExecutor => ({
      name,
      async execute(request) {
        if (name === "orders") return orders(request);
        await clock.advance(peopleMs);
        return execute(request);
      },
    }),
  );
  const times = { operationTimeoutMs: 1_000, subgraphTimeoutMs: 600_000 };
  return (await gatewayOver(shop(), { executors, clock, ...times })).gateway;
}

const run = async (gateway: Awaited<ReturnType<typeof gatewayWith>>) => {
  const { data, errors = [] } = await gateway.execute({ document: QUERY, actor: actor(), requestId: "r-1" });
  return { data, errors: errors.map((error) => [error.path, error.extensions.code]) };
};

const LATE = {
  data: { me: { name: "Ada", credit: null } },
  errors: [[["me", "credit"], "subgraph_timeout"]],
};

it("a later step waits only for what the earlier ones left of the operation's time", { timeout: 10_000 }, async () => {
  let told = false;
  const never = ({ signal }: SubgraphRequest) =>
    new Promise<never>(() =>
      signal!.addEventListener("abort", () => {
        told = true;
      }),
    );
  expect(await run(await gatewayWith(new FakeClock(), 950, never))).toEqual(LATE);
  expect(told).toBe(true);
});

it("a step whose operation has no time left is not asked, and what is there stays", async () => {
  let asked = 0;
  const counted = () => {
    asked++;
    return { data: {} };
  };
  expect(await run(await gatewayWith(new FakeClock(), 1_000, counted))).toEqual(LATE);
  expect(asked).toBe(0);
});

it("each event of a subscription has the whole time", async () => {
  const clock = new FakeClock();
  const ticker = new Ticker();
  const { gateway } = await gatewayOver(shop(ticker), { clock, operationTimeoutMs: 1_000 });
  const opened = await gateway.subscribe({
    document: parse("subscription { ticks { value owner { credit } } }"),
    actor: actor(),
    requestId: "r-1",
  });
  const stream = (opened as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  for (const value of [1, 2]) {
    await clock.advance(5_000);
    ticker.tick(value);
    expect((await stream.next()).value).toEqual({ data: { ticks: { value, owner: { credit: 5 } } } });
  }
  await stream.return!();
  await gateway.close();
});
