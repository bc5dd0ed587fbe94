import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { parse } from "graphql";
import { createClient } from "graphql-ws";
import { afterEach, beforeEach, expect, it } from "vitest";
import { WebSocket } from "ws";
import { remote } from "../../gateway/executors/http.ts";
import { subgraphPath } from "../../infra/graphql/subgraph-wire.ts";
import { systemClock } from "../../infra/kernel/clock.ts";
import { createSubgraphServer } from "../support/subgraph-server.ts";
import { actor, memoryLog, schemaOf } from "./graph.ts";
import { type Served, served, until } from "./served.ts";
import { shop, Ticker } from "./shop.ts";

const signingKey = randomBytes(32);
let ticker: Ticker;
let servers: Map<string, { app: FastifyInstance; url: string }>;
let gateway: Served;

beforeEach(async () => {
  ticker = new Ticker();
  const subgraphs = shop(ticker);
  servers = new Map();
  for (const subgraph of subgraphs) {
    const { log } = memoryLog();
    const app = await createSubgraphServer({
      name: subgraph.name,
      schema: schemaOf(subgraph),
      contextFor: (caller) => caller,
      signingKey,
      clock: systemClock,
      log,
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    servers.set(subgraph.name, { app, url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` });
  }
  const executors = subgraphs.map(({ name }) =>
    remote({ name, url: servers.get(name)!.url, signingKey, clock: systemClock }),
  );
  gateway = await served(subgraphs, { executors });
});
afterEach(async () => {
  await gateway.close();
  for (const { app } of servers.values()) await app.close();
});

const run = (query: string) => gateway.gateway.execute({ document: parse(query), actor: actor(), requestId: "r-1" });

it("joins subgraphs of other processes, and hands on who asks with the request id", async () => {
  const result = await run("{ me { name orders { id buyer { credit } } } whoAsks }");
  expect(result).toEqual({
    data: { me: { name: "Ada", orders: [{ id: "u1-o1", buyer: { credit: 5 } }] }, whoAsks: "key_1 r-1" },
  });
});

it("keeps refusals and masks faults of other processes", async () => {
  const { errors } = await run("{ boom fault }");
  expect(JSON.stringify(errors)).not.toContain("secret");
  expect(errors!.map((e) => [e.path, e.extensions.code])).toEqual(
    expect.arrayContaining([
      [["boom"], "internal_error"],
      [["fault"], "forbidden"],
    ]),
  );
});

it("keeps the others' data when a process is gone, and uses it again when it is back", async () => {
  const { app, url } = servers.get("orders")!;
  await app.close();
  const down = await run("{ me { name credit } }");
  expect(down.data).toEqual({ me: { name: "Ada", credit: null } });
  expect(down.errors!.map((e) => [e.path, e.extensions.code])).toEqual([[["me", "credit"], "subgraph_unavailable"]]);
  const again = await createSubgraphServer({
    name: "orders",
    schema: schemaOf(shop()[1]!),
    contextFor: (caller) => caller,
    signingKey,
    clock: systemClock,
    log: memoryLog().log,
  });
  servers.set("orders", { app: again, url });
  await again.listen({ port: Number(new URL(url).port), host: "127.0.0.1" });
  expect((await run("{ me { credit } }")).data).toEqual({ me: { credit: 5 } });
});

it("streams events of another process, joined, and closing frees its silent source", async () => {
  const client = gateway.client();
  const stream = client.iterate({ query: "subscription { ticks { value owner { credit } } }" });
  const first = stream.next();
  await until(() => ticker.open === 1, "listening");
  ticker.tick(3);
  expect((await first).value).toEqual({ data: { ticks: { value: 3, owner: { credit: 5 } } } });
  void stream.next();
  await stream.return!();
  await until(() => ticker.open === 0, "freed in the other process");
});

it("stops reading another process's stream while the reader is behind", async () => {
  const answer = await fetch(
    `${gateway.url}/graphql/stream?${new URLSearchParams({ query: "subscription { flood }" })}`,
    { headers: { authorization: "Bearer nk_good" } },
  );
  let seen = -1;
  while (seen !== ticker.flooded) {
    seen = ticker.flooded;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  expect(seen).toBeGreaterThan(0);
  await answer.body!.cancel();
}, 60_000);

it("answers nobody whom no gateway vouches for", async () => {
  const { url } = servers.get("people")!;
  const response = await fetch(`${url}${subgraphPath("people")}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-nodus-actor": "e30.AAAA" },
    body: '{"query":"{ me { id } }"}',
  });
  expect(response.status).toBe(401);
  const client = createClient({
    url: `${url.replace("http", "ws")}${subgraphPath("people")}`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  const failure = await client
    .iterate({ query: "subscription { ticks { value } }" })
    .next()
    .catch((e: unknown) => e);
  expect(failure).toMatchObject({ code: 4403 });
});
