import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { parse } from "graphql";
import { GRAPHQL_TRANSPORT_WS_PROTOCOL, MessageType } from "graphql-ws";
import { afterEach, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { remote } from "../../gateway/executors/http.ts";
import { inProcess } from "../../gateway/executors/in-process.ts";
import { systemClock } from "../../infra/kernel/clock.ts";
import { actor, schemaOf } from "./graph.ts";
import { type Served, served, until } from "./served.ts";
import { shop, Ticker } from "./shop.ts";

/** A machine that takes connections and then says nothing: neither an answer nor that it is gone. */
class Silent {
  readonly server: Server = createServer(() => {});
  readonly #sockets = new WebSocketServer({
    server: this.server,
    autoPong: false,
    handleProtocols: () => GRAPHQL_TRANSPORT_WS_PROTOCOL,
  });
  open = 0;

  async start(): Promise<string> {
    this.#sockets.on("connection", (socket) => {
      this.open++;
      socket.on("close", () => this.open--);
      socket.once("message", () => {
        socket.send(JSON.stringify({ type: MessageType.ConnectionAck }));
        socket.send(JSON.stringify({ id: "1", type: MessageType.Next, payload: { data: { ticks: { value: 1 } } } }));
      });
    });
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets.clients) socket.terminate();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

let silent: Silent;
let gateway: Served;

/** A gateway whose subgraph of this name is the silent machine. */
async function serveWithSilent(name: "people" | "orders"): Promise<void> {
  silent = new Silent();
  const url = await silent.start();
  const subgraphs = shop(new Ticker());
  const executors = subgraphs.map((subgraph) =>
    subgraph.name === name
      ? remote({ name, url, signingKey: randomBytes(32), clock: systemClock, pingMs: 100 })
      : inProcess(subgraph.name, schemaOf(subgraph), (caller) => caller),
  );
  gateway = await served(subgraphs, { executors, subgraphTimeoutMs: 300 });
}

afterEach(async () => {
  await gateway.close();
  await silent.close();
});

it("is waited for within bounds, and the others' data stays", async () => {
  await serveWithSilent("orders");
  const { data, errors } = await gateway.gateway.execute({
    document: parse("{ me { name credit } }"),
    actor: actor(),
    requestId: "r-1",
  });
  expect(data).toEqual({ me: { name: "Ada", credit: null } });
  expect(errors!.map((e) => [e.path, e.extensions.code])).toEqual([[["me", "credit"], "subgraph_timeout"]]);
});

it("ends a stream with an error that says code and path, and leaves the others of its socket", async () => {
  await serveWithSilent("people");
  const client = gateway.client();
  const query = "subscription { ticks { value } }";
  const [one, other] = [client.iterate({ query }), client.iterate({ query: "{ total }" })];
  expect((await one.next()).value).toEqual({ data: { ticks: { value: 1 } } });
  const end = (await one.next()).value;
  expect(end).toMatchObject({ errors: [{ path: ["ticks"], extensions: { code: "subgraph_unavailable" } }] });
  expect(await one.next()).toMatchObject({ done: true });
  expect((await other.next()).value).toEqual({ data: { total: 1 } });
  expect((await client.iterate({ query: "{ total }" }).next()).value).toEqual({ data: { total: 1 } });
  await until(() => silent.open === 0, "let go of the silent machine");
});

it("ends a stream of server-sent events in the same way", async () => {
  await serveWithSilent("people");
  const answer = await fetch(
    `${gateway.url}/graphql/stream?${new URLSearchParams({ query: "subscription { ticks { value } }" })}`,
    { headers: { authorization: "Bearer nk_good" } },
  );
  const text = await answer.text();
  expect(text).toContain('{"data":{"ticks":{"value":1}}}');
  expect(text).toContain('"code":"subgraph_unavailable"');
  expect(text).toMatch(/event: complete/);
});
