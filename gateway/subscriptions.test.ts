import { parse } from "graphql";
import { createClient as createSseClient } from "graphql-sse";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { actor } from "../tests/federation/graph.ts";
import { type Served, served, until, WITH_KEY } from "../tests/federation/served.ts";
import { shop, Ticker } from "../tests/federation/shop.ts";
import type { Result } from "./request.ts";
import type { Stream } from "./stream.ts";

const TICKS = "subscription { ticks { value owner { name credit } } }";

let ticker: Ticker;
let server: Served;
beforeEach(async () => {
  ticker = new Ticker();
  server = await served(shop(ticker), { actorCacheMs: 100 }, {});
});
afterEach(() => server.close());

interface Item {
  data?: { ticks: { value: number } } & Record<string, unknown>;
  errors?: readonly { path?: unknown; message: string; extensions?: Record<string, unknown> }[];
}

const valuesOf = (items: Item[]) => items.map((item) => item.data?.ticks.value);

/** Waits until the flood is no longer read: its reader is behind, and all buffers on the way are full. */
async function standstill(): Promise<void> {
  let seen = -1;
  while (seen !== ticker.flooded) {
    seen = ticker.flooded;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  if (seen === 0) throw new Error("nothing was read at all");
}

/** Reads a subscription into an array; `close` ends it, `done` settles when it has ended. */
function listen(client: ReturnType<Served["client"]>, query = TICKS) {
  const items: Item[] = [];
  const stream = client.iterate({ query });
  const done = (async () => {
    for await (const item of stream) items.push(item as Item);
  })();
  done.catch(() => {}); // who cares awaits it
  return { items, done, close: () => stream.return!() };
}

describe.each(["nk_good as Authorization", "nk_good as authorization", "nk_good as apiKey"])(
  "a socket opened with %s",
  (how) => {
    const params = { [how.split(" as ")[1]!]: how.endsWith("apiKey") ? "nk_good" : "Bearer nk_good" };

    it("streams events in order, each joined with other subgraphs", async () => {
      const { items, close } = listen(server.client(params));
      await until(() => ticker.open === 1, "the subgraph has a listener");
      for (const value of [1, 2, 3]) ticker.tick(value);
      await until(() => items.length === 3, "three events");
      expect(items[0]).toEqual({ data: { ticks: { value: 1, owner: { name: "Person u1", credit: 5 } } } });
      expect(valuesOf(items)).toEqual([1, 2, 3]);
      await close();
    });
  },
);

describe("streams", () => {
  it("gives frames equal to the subgraph's own, errors of one event in that event alone", async () => {
    const { items, close } = listen(server.client(), "subscription { ticks { value owner { name } } }");
    await until(() => ticker.open === 1, "listening");
    for (const value of [1, -2, 3]) ticker.tick(value);
    await until(() => items.length === 3, "three events");
    expect(items[1]!.data!.ticks).toEqual({ value: -2, owner: null });
    expect(items[1]!.errors).toHaveLength(1);
    expect(items[2]).toEqual({ data: { ticks: { value: 3, owner: { name: "Person u1" } } } });
    await close();
  });

  it("ends when the source ends, and takes literal arguments", async () => {
    const { items, done } = listen(server.client(), "subscription { count(to: 3) }");
    await done;
    expect(items).toEqual([{ data: { count: 1 } }, { data: { count: 2 } }, { data: { count: 3 } }]);
  });

  it("says why a subscription can't be opened, with its code", async () => {
    const { items, done } = listen(server.client(), "subscription { broken }");
    await done;
    expect(items[0]!.errors![0]!.extensions).toMatchObject({ code: "not_now" });
  });

  it("frees everything upstream when 1,000 subscriptions on a silent source are opened and closed", async () => {
    const clients = Array.from({ length: 20 }, () => server.client());
    const streams = clients.flatMap((client) => Array.from({ length: 50 }, () => listen(client)));
    await until(() => ticker.open === 1_000, "1,000 listeners", 20_000);
    expect(server.gateway.keys.watched).toBe(1_020); // streams and sockets
    await Promise.all(streams.slice(0, 500).map((stream) => stream.close()));
    await until(() => ticker.open === 500, "the completed half is free");
    await Promise.all(clients.map((client) => client.terminate()));
    await until(() => ticker.open === 0, "the rest is free");
    await until(() => server.gateway.keys.watched === 0, "no key is watched");
  });

  it("keeps operations of one socket apart: ending one ends no other", async () => {
    const client = server.client();
    const [first, second] = [listen(client), listen(client)];
    const third = listen(client, "subscription { count(to: 1) }");
    await until(() => ticker.open === 2, "two listeners");
    await third.done;
    await first.close();
    await until(() => ticker.open === 1, "one listener");
    ticker.tick(7);
    await until(() => second.items.length === 1, "the second goes on");
    expect(first.items).toEqual([]);
    await second.close();
  });

  it("refuses one operation too many on a socket, and the others go on", async () => {
    await server.close();
    server = await served(shop(ticker), { operationsPerConnection: 2 });
    const client = server.client();
    const streams = [listen(client), listen(client)];
    await until(() => ticker.open === 2, "two listeners");
    const failure = (await listen(client).done.catch((e: unknown) => e)) as { extensions: Record<string, unknown> }[];
    expect(failure[0]!.extensions).toMatchObject({ code: "too_many_operations", detail: { limit: 2, seen: 3 } });
    await streams[0]!.close();
    await until(() => ticker.open === 1, "room again");
    streams.push(listen(client));
    await until(() => ticker.open === 2, "taken again");
  });

  it("slows only the stream whose reader is slow", async () => {
    const [slow, quick] = [
      new WebSocket(`${server.url.replace("http", "ws")}/graphql`, "graphql-transport-ws"),
      server.client(),
    ];
    await new Promise((resolve) => slow.once("open", resolve));
    slow.send(JSON.stringify({ type: "connection_init", payload: { apiKey: "nk_good" } }));
    await new Promise((resolve) => slow.once("message", resolve));
    slow.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query: "subscription { flood }" } }));
    await new Promise((resolve) => slow.once("message", resolve));
    slow.pause();
    await standstill();
    const pulled = ticker.flooded;
    expect(pulled).toBeLessThan(100_000);
    const { items, close } = listen(quick);
    await until(() => ticker.open === 1, "the neighbour listens");
    for (let value = 1; value <= 500; value++) ticker.tick(value);
    await until(() => items.length === 500, "the neighbour has everything");
    expect(ticker.flooded).toBe(pulled);
    await close();
    slow.terminate();
  }, 60_000);

  it("runs queries and mutations on a socket too", async () => {
    const { items, done } = listen(server.client(), 'mutation { rename(id: "u1", name: "x") { name } }');
    await done;
    expect(items).toEqual([{ data: { rename: { name: "x" } } }]);
  });

  it("masks faults on a socket", async () => {
    const { items, done } = listen(server.client(), "{ boom }");
    await done;
    expect(JSON.stringify(items)).not.toContain("secret");
    expect(items[0]!.errors![0]!.extensions).toMatchObject({ code: "internal_error", requestId: expect.any(String) });
  });
});

describe("keys of streams", () => {
  const closing = async (promise: Promise<unknown>) =>
    (await promise.catch((e: unknown) => e)) as { code: number; reason: string };

  it("tells a socket by its close code that a message is too large or no text", async () => {
    const closeCode = async (message: string | Buffer) => {
      const socket = new WebSocket(`${server.url.replace("http", "ws")}/graphql`, "graphql-transport-ws");
      socket.once("open", () => socket.send(message, { binary: false }));
      return new Promise((resolve) => socket.once("close", resolve));
    };
    expect(await closeCode("x".repeat(20 * 1024 * 1024))).toBe(1009);
    expect(await closeCode(Buffer.from([0xff, 0xfe]))).toBe(1007);
  });

  it("closes a socket that comes with a wrong key", async () => {
    expect(await closing(listen(server.client({ apiKey: "nk_wrong" })).done)).toMatchObject({
      code: 4401,
      reason: expect.stringContaining("unauthorized"),
    });
  });

  it("refuses data on a socket without a key", async () => {
    const errors = (await listen(server.client({})).done.catch((e: unknown) => e)) as { extensions: unknown }[];
    expect(errors[0]!.extensions).toMatchObject({ code: "unauthorized" });
  });

  it("ends a revoked key's streams with an error and a close, and no other's", async () => {
    const mine = listen(server.client());
    const others = listen(server.client({ apiKey: "nk_other" }));
    await until(() => ticker.open === 2, "two listeners");
    server.keys.delete("nk_good");
    server.gateway.keys.revoked("key_1");
    await mine.done.catch(() => {});
    expect(mine.items.at(-1)!.errors![0]!.extensions).toMatchObject({ code: "key_ended" });
    await until(() => ticker.open === 1, "freed upstream");
    ticker.tick(1);
    await until(() => others.items.length === 1, "the other goes on");
    expect((await server.post({ query: "{ total }" })).status).toBe(401);
  });

  it("finds out by itself that a key has expired", async () => {
    const stream = listen(server.client());
    await until(() => ticker.open === 1, "listening");
    server.keys.delete("nk_good");
    await until(() => ticker.open === 0, "ended without a notice");
    await stream.done.catch(() => {}); // the socket was closed as well
    expect(stream.items.at(-1)!.errors![0]!.extensions).toMatchObject({ code: "key_ended" });
  });
});

describe("server-sent events", () => {
  const sse = (headers: Record<string, string> = WITH_KEY) =>
    createSseClient({ url: `${server.url}/graphql/stream`, headers, retryAttempts: 0 });

  it("stream events, and closing frees the silent source", async () => {
    const client = sse();
    const stream = client.iterate<Item["data"]>({ query: TICKS });
    const first = stream.next();
    await until(() => ticker.open === 1, "listening");
    ticker.tick(4);
    expect((await first).value).toEqual({ data: { ticks: { value: 4, owner: { name: "Person u1", credit: 5 } } } });
    client.dispose();
    await until(() => ticker.open === 0, "freed");
  });

  it("end with complete, and answer queries", async () => {
    const items: unknown[] = [];
    for await (const item of sse().iterate({ query: "subscription { count(to: 2) }" })) items.push(item);
    for await (const item of sse().iterate({ query: "{ total }" })) items.push(item);
    expect(items).toEqual([{ data: { count: 1 } }, { data: { count: 2 } }, { data: { total: 1 } }]);
  });

  it("end with their key", async () => {
    const items: Item[] = [];
    const reading = (async () => {
      for await (const item of sse().iterate({ query: TICKS })) items.push(item as Item);
    })();
    await until(() => ticker.open === 1, "listening");
    server.gateway.keys.revoked("key_1");
    await reading;
    expect(items.at(-1)!.errors![0]!.extensions).toMatchObject({ code: "key_ended" });
  });

  it("refuse like any request: status, code and request id", async () => {
    const stream = (query: string, headers: Record<string, string> = WITH_KEY) =>
      fetch(`${server.url}/graphql/stream?${new URLSearchParams({ query })}`, {
        headers: { accept: "text/event-stream", ...headers },
      });
    const answers = await Promise.all([
      stream(TICKS, {}),
      stream(TICKS, { authorization: "Bearer nk_wrong" }),
      stream("subscription { nope }"),
      stream('mutation { rename(id: "1", name: "x") { name } }'),
      stream(""),
    ]);
    expect(answers.map((a) => a.status)).toEqual([401, 401, 400, 405, 400]);
    for (const answer of answers) {
      expect(answer.headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
      expect(((await answer.json()) as Item).errors![0]!.extensions).toHaveProperty("code");
    }
  });

  it("stop pulling while their reader is behind", async () => {
    const answer = await fetch(
      `${server.url}/graphql/stream?${new URLSearchParams({ query: "subscription { flood }" })}`,
      { headers: WITH_KEY },
    );
    await standstill();
    expect(ticker.flooded).toBeLessThan(100_000);
    await answer.body!.cancel();
  }, 60_000);
});

describe("in this process", () => {
  const subscribe = (query: string, signal?: AbortSignal) =>
    server.gateway.subscribe({ document: parse(query), actor: actor(), requestId: "r1", signal }) as Promise<
      Stream<Result>
    >;

  it("a stream ends at once when its reader returns, on a silent source", async () => {
    const stream = await subscribe(TICKS);
    const waiting = stream.next();
    await until(() => ticker.open === 1, "listening");
    await stream.return();
    expect(ticker.open).toBe(0);
    expect(await waiting).toEqual({ done: true, value: undefined });
  });

  it("a stream ends when the caller goes away, or its key does", async () => {
    const gone = new AbortController();
    const [first, second] = [await subscribe(TICKS, gone.signal), await subscribe(TICKS)];
    gone.abort();
    expect(await first.next()).toEqual({ done: true, value: undefined });
    server.gateway.keys.revoked("key_1");
    expect((await second.next()).value).toMatchObject({ errors: [{ extensions: { code: "key_ended" } }] });
    expect((await second.next()).done).toBe(true);
    expect([ticker.open, server.gateway.keys.watched]).toEqual([0, 0]);
  });
});
