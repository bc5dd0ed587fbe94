import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type Served, served, until } from "../tests/federation/served.ts";
import { shop, Ticker } from "../tests/federation/shop.ts";

const TICKS = "subscription { ticks { value } }";
const MIB = 1024 * 1024;

interface Said {
  id?: string;
  type: string;
  payload?: { extensions: { code: string } }[] & { data?: { ticks: { value: number }; __typename?: string } };
}

/** A client that follows no rule but those that a test gives it. */
class Rude {
  readonly socket: WebSocket;
  readonly said: Said[] = [];
  readonly closed: Promise<readonly [code: number, reason: string]>;

  constructor(url: string) {
    this.socket = new WebSocket(`${url.replace("http", "ws")}/graphql`, "graphql-transport-ws");
    this.socket.on("message", (text) => this.said.push(JSON.parse(String(text))));
    this.socket.on("error", () => {}); // it is closed then
    this.closed = once(this.socket, "close").then(([code, reason]) => [code, String(reason)] as const);
  }

  async init(payload?: object): Promise<this> {
    await once(this.socket, "open");
    this.send({ type: "connection_init", payload });
    await until(() => this.said.length === 1, "the socket is acknowledged");
    return this;
  }

  send(...messages: object[]): void {
    for (const message of messages) this.socket.send(JSON.stringify(message));
  }

  /** What was said of an operation, without the acknowledgement. */
  about(id: string): Said[] {
    return this.said.filter((message) => message.id === id);
  }
}

const subscribe = (id: string, query = TICKS, variables = {}) => ({
  id,
  type: "subscribe",
  payload: { query, variables },
});
const complete = (id: string) => ({ id, type: "complete" });

let ticker: Ticker;
let server: Served;
let clients: Rude[];
const rude = () => {
  const client = new Rude(server.url);
  clients.push(client);
  return client;
};
const withKey = () => rude().init({ apiKey: "nk_good" });
async function serve(options: Parameters<typeof served>[1] = {}) {
  ticker = new Ticker();
  clients = [];
  server = await served(shop(ticker), options);
}
beforeEach(() => serve());
afterEach(async () => {
  for (const client of clients) client.socket.terminate();
  await server.close();
});

describe("an id that is given again as soon as its operation was completed", () => {
  it("is the last operation's alone, and no stream of it stays upstream", async () => {
    const client = await withKey();
    for (let n = 0; n < 100; n++) client.send(subscribe("1"), complete("1"));
    client.send(subscribe("1"));
    await until(() => ticker.open === 1, "one stream is open");
    ticker.tick(7);
    await until(() => client.about("1").length === 1, "the event comes once");
    expect(client.about("1")[0]).toMatchObject({ type: "next", payload: { data: { ticks: { value: 7 } } } });
    client.socket.terminate();
    await until(() => ticker.open === 0, "nothing is left");
  });

  it("never gets the answer of the operation that had it before", async () => {
    const client = await withKey();
    client.send(subscribe("1", "subscription { count(to: 3) }"), complete("1"), subscribe("1", "{ __typename }"));
    await until(() => client.about("1").some(({ type }) => type === "complete"), "it is answered");
    client.send(subscribe("2", "{ __typename }"));
    await until(() => client.about("2").length === 2, "the socket has settled");
    expect(client.about("1")).toEqual([
      { id: "1", type: "next", payload: { data: { __typename: "Query" } } },
      { id: "1", type: "complete" },
    ]);
  });

  it("counts each operation until it is over", async () => {
    await server.close();
    await serve({ operationsPerConnection: 5 });
    const client = await withKey();
    for (let n = 0; n < 20; n++) client.send(subscribe("1"), complete("1"));
    client.send(subscribe("last"));
    await until(() => client.about("last").length === 1, "refused");
    expect(client.about("last")[0]).toMatchObject({
      type: "error",
      payload: [{ extensions: { code: "too_many_operations" } }],
    });
    let tries = 0;
    await until(() => {
      if (ticker.open === 0) client.send(subscribe(`again-${tries++}`));
      return ticker.open > 0; // of those that were sent while the first was being opened, more may be
    }, "there is room again");
  });
});

describe("a client that sends without reading", () => {
  it.each([
    ["pings of the protocol", () => ({ type: "ping", payload: { text: "x".repeat(50_000) } })],
    ["operations that are refused", () => subscribe("x".repeat(50_000))],
  ])("is read no further while its answers wait: %s", async (_what, message) => {
    const client = await withKey();
    client.socket.pause();
    for (let sent = 0; sent < 60; sent += 50_000 / MIB) client.send(message());
    await until(() => client.socket.bufferedAmount > 40 * MIB, "most of it stays with its sender");
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(client.socket.bufferedAmount).toBeGreaterThan(40 * MIB);
    const other = await withKey();
    other.send(subscribe("1", "{ __typename }"));
    await until(() => other.about("1").length === 2, "another client is served");
    client.socket.resume();
    await until(() => client.socket.bufferedAmount === 0, "all of it is read once its answers are", 20_000);
  });
});

it("reads 10,000 operations on one socket without keeping another client waiting, and refuses what is too much", async () => {
  const client = await withKey();
  for (let n = 0; n < 10_000; n++) client.send(subscribe(String(n)));
  const other = await withKey();
  other.send(subscribe("1", "{ __typename }"));
  await until(() => other.about("1").length === 2, "another client is served");
  expect(client.said.length).toBeLessThan(10_000);
  await until(() => client.said.length >= 9_801, "all that was too much is refused", 20_000);
  expect(ticker.open).toBe(200);
  expect(new Set(client.said.slice(1).map(({ payload }) => payload![0]!.extensions.code))).toEqual(
    new Set(["too_many_operations"]),
  );
}, 40_000);

it("refuses operations whose messages are more than a socket may hold, or whose id is long", async () => {
  const client = await withKey();
  const large = { text: "x".repeat(1_000_000) };
  for (let n = 0; n < 9; n++) client.send(subscribe(String(n), TICKS, large));
  await until(() => client.about("8").length === 1, "the ninth is refused");
  expect(client.about("8")[0]!.payload![0]!.extensions.code).toBe("operations_too_large");
  await until(() => ticker.open === 8, "the others run");
  client.send(complete("0"), subscribe("x".repeat(257)));
  await until(() => client.said.length === 3, "the id is refused");
  expect(client.said[2]!.payload![0]!.extensions.code).toBe("operation_id_too_long");
});

it("closes a socket for a message above the limit of GraphQL, where other routes take larger ones", async () => {
  await server.close();
  ticker = new Ticker();
  server = await served(shop(ticker), {}, { socketBytes: 8 * MIB });
  const client = await withKey();
  client.send(subscribe("1", "{ __typename }", { text: "x".repeat(2 * MIB) }));
  expect(await client.closed).toEqual([1009, `A message may have ${MIB} bytes.`]);
});

it("closes a socket that is not greeted in time, pings or not, and leaves those alone that were", async () => {
  await server.close();
  await serve({ socketGreetingMs: 200 });
  const greeted = await withKey();
  const pinging = rude();
  await once(pinging.socket, "open");
  pinging.send({ type: "ping" });
  expect((await pinging.closed)[0]).toBe(4408);
  greeted.send(subscribe("1", "{ __typename }"));
  await until(() => greeted.about("1").length === 2, "the other is served");
});

it("takes a greeting that came while the process was busy for seconds", async () => {
  const client = rude();
  await once(client.socket, "open");
  client.send({ type: "connection_init" });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_500);
  await until(() => client.said.length > 0 || client.socket.readyState === WebSocket.CLOSED, "it is answered");
  expect(client.said).toEqual([{ type: "connection_ack" }]);
});

it("closes a socket that shows no key in time, and leaves those with a key alone", async () => {
  await server.close();
  await serve({ socketWithoutKeyMs: 100 });
  const keyed = await withKey();
  const [code, reason] = await (await rude().init()).closed;
  expect(code).toBe(4401);
  expect(reason).toContain("unauthorized");
  keyed.send(subscribe("1", "{ __typename }"));
  await until(() => keyed.about("1").length === 2, "the other is served");
});
