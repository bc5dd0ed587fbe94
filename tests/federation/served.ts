import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { type Client, createClient } from "graphql-ws";
import { WebSocket } from "ws";
import type { GatewayOptions } from "../../gateway/gateway.ts";
import { createServer, type ServerOptions } from "../../gateway/server.ts";
import { gatewayOver, type TestGateway, type TestSubgraph } from "./graph.ts";

export interface Served extends TestGateway {
  app: FastifyInstance;
  url: string;
  /** A graphql-ws client that gives up at the first failure. */
  client(connectionParams?: Record<string, unknown>): Client;
  /** POSTs JSON to /graphql with the good key, unless the headers say otherwise. */
  post(body: unknown, headers?: Record<string, string>): Promise<Response>;
  close(): Promise<void>;
}

export const WITH_KEY = { authorization: "Bearer nk_good" };

/** A gateway over these subgraphs on a port of its own. */
export async function served(
  subgraphs: readonly TestSubgraph[],
  options: Partial<GatewayOptions> = {},
  server: ServerOptions = {},
): Promise<Served> {
  const made = await gatewayOver(subgraphs, { introspection: true, ...options });
  const app = await createServer(made.gateway, server);
  await app.listen({ port: 0, host: "127.0.0.1" });
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const clients: Client[] = [];
  return {
    ...made,
    app,
    url,
    client(connectionParams = { Authorization: "Bearer nk_good" }) {
      const client = createClient({
        url: `${url.replace("http", "ws")}/graphql`,
        webSocketImpl: WebSocket,
        connectionParams,
        retryAttempts: 0,
      });
      clients.push(client);
      return client;
    },
    post: (body, headers = {}) =>
      fetch(`${url}/graphql`, {
        method: "POST",
        headers: { "content-type": "application/json", ...WITH_KEY, ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    async close() {
      await Promise.all(clients.map((client) => client.dispose()));
      await app.close();
    },
  };
}

/** Waits until something is so; fails with its last value when that takes too long. */
export async function until(is: () => boolean, what: string, withinMs = 5_000): Promise<void> {
  const end = Date.now() + withinMs;
  while (!is()) {
    if (Date.now() > end) throw new Error(`still not so after ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
