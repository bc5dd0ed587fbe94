import { once } from "node:events";
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { Metrics } from "../infra/telemetry/metrics.ts";
import { actor } from "../tests/federation/graph.ts";
import { type Served, served, until } from "../tests/federation/served.ts";
import { shop, Ticker } from "../tests/federation/shop.ts";
import { measureStreams } from "./stream-metrics.ts";

const TICKS = "subscription { ticks { value } }";
const MINE = "nk_good";
/** Another key of the same team, and one of another team. */
const MY_OTHER = "nk_other";
const THEIRS = "nk_theirs";

let ticker: Ticker;
let server: Served;
const sockets: WebSocket[] = [];
const requests: ClientRequest[] = [];

async function serve(options: Parameters<typeof served>[1]) {
  ticker = new Ticker();
  server = await served(shop(ticker), options);
  server.keys.set(THEIRS, { ...actor("key_9"), tenantId: "team_9" });
}
beforeEach(() => serve({ streamsPerTeam: 2, streamsWithoutKey: 3 }));
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  for (const request of requests.splice(0)) request.destroy();
  await server.close();
});

/** A socket that has not said anything yet. */
async function socket(): Promise<WebSocket> {
  const opened = new WebSocket(`${server.url.replace("http", "ws")}/graphql`, "graphql-transport-ws");
  opened.on("error", () => {}); // it is closed then
  sockets.push(opened);
  await once(opened, "open");
  return opened;
}

/** The acknowledgement of a socket, or the code and reason of its close. */
async function greet(greeting: WebSocket, apiKey?: string): Promise<string> {
  const answer = Promise.race([
    once(greeting, "message").then(([text]) => JSON.parse(String(text)).type as string),
    once(greeting, "close").then(([code, reason]) => `${code} ${reason}`),
  ]);
  greeting.send(JSON.stringify({ type: "connection_init", payload: { apiKey } }));
  return answer;
}

const keyed = async (apiKey: string) => greet(await socket(), apiKey);

/** A subscription over server-sent events, once it is answered. */
async function events(apiKey: string | null, query = TICKS): Promise<IncomingMessage> {
  const request = http.request(`${server.url}/graphql/stream`, {
    method: "POST",
    agent: false,
    headers: { "content-type": "application/json", ...(apiKey && { authorization: `Bearer ${apiKey}` }) },
  });
  request.on("error", () => {}); // cut off by the test
  requests.push(request);
  request.end(JSON.stringify({ query }));
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.on("error", () => {}); // cut off by the test
  return response;
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response) text += chunk;
  return text;
}

const counts = () => [server.gateway.streams.ofTeam("team_1"), server.gateway.streams.ofTeam("team_9")];

describe("a team that has as many streams as it may", () => {
  it("is refused a further socket with the limit and what to do, whichever of its keys it shows", async () => {
    expect([await keyed(MINE), await keyed(MY_OTHER)]).toEqual(["connection_ack", "connection_ack"]);
    expect(await keyed(MINE)).toBe(
      "4429 too_many_streams: The team has too many streams open. The limit is 2. Close some, or wait until some end.",
    );
    expect(await keyed(THEIRS)).toBe("connection_ack");
    expect(counts()).toEqual([2, 1]);
    sockets[0]!.close();
    await until(() => counts()[0] === 1, "one was closed");
    expect(await keyed(MINE)).toBe("connection_ack");
  });

  it("is refused further events with 429, and the time to wait", async () => {
    await keyed(MINE);
    expect((await events(MINE)).statusCode).toBe(200);
    const refused = await events(MINE);
    expect([refused.statusCode, refused.headers["retry-after"]]).toEqual([429, "5"]);
    expect(JSON.parse(await bodyOf(refused)).errors[0].extensions).toMatchObject({
      code: "too_many_streams",
      fix: "Close some, or wait until some end.",
      detail: { limit: 2, seen: 3 },
    });
    expect((await events(THEIRS)).statusCode).toBe(200);
    requests[0]!.destroy();
    await until(() => counts()[0] === 1, "the connection that was cut counts no longer");
    expect((await events(MINE)).statusCode).toBe(200);
  });

  it("may go on asking and telling over HTTP", async () => {
    await Promise.all([keyed(MINE), keyed(MINE)]);
    expect(await (await server.post({ query: "{ total }" })).json()).toEqual({ data: { total: 1 } });
  });
});

describe("operations on a team's streams", () => {
  const subscribe = (on: WebSocket, n: number) =>
    on.send(JSON.stringify({ id: String(n), type: "subscribe", payload: { query: TICKS } }));

  it("are bounded together, on whichever of them they run, and another team's are not", async () => {
    await Promise.all([keyed(MINE), keyed(MY_OTHER)]);
    const said: { type: string; payload?: { extensions: Record<string, unknown> }[] }[] = [];
    sockets[1]!.on("message", (text) => said.push(JSON.parse(String(text))));
    for (let n = 0; n < 15; n++) subscribe(sockets[0]!, n);
    await until(() => ticker.open === 15, "fifteen run");
    for (let n = 0; n < 6; n++) subscribe(sockets[1]!, n);
    await until(() => ticker.open === 20 && said.length === 1, "twenty run, one is refused");
    expect(said[0]).toMatchObject({
      type: "error",
      payload: [{ extensions: { code: "too_many_team_operations", status: 429, detail: { limit: 20, seen: 21 } } }],
    });
    expect((await events(THEIRS)).statusCode).toBe(200);
    sockets[0]!.terminate();
    await until(() => server.gateway.streams.operationsOfTeam("team_1") === 5, "fifteen are over");
    expect((await events(MINE)).statusCode).toBe(200);
    for (const cut of sockets) cut.terminate();
    for (const cut of requests) cut.destroy();
    await until(() => ticker.open === 0, "all are over");
    await until(() => server.gateway.streams.operationsOfTeam("team_1") === 0, "nothing is counted");
    expect(counts()).toEqual([0, 0]);
  });
});

describe("what ends is counted no longer", () => {
  beforeEach(async () => {
    await server.close();
    await serve({ streamsPerTeam: 40, streamsWithoutKey: 40 });
  });
  const open = () => Object.values(server.gateway.streams.byKind).reduce((sum, count) => sum + count, 0);

  it("when clients are cut off, in whatever state", async () => {
    await Promise.all(Array.from({ length: 10 }, () => socket())); // have shown no key
    await Promise.all(Array.from({ length: 10 }, () => keyed(MINE)));
    await Promise.all(Array.from({ length: 10 }, () => events(MINE)));
    const looked = await socket();
    looked.send(JSON.stringify({ type: "connection_init", payload: { apiKey: MINE } }));
    looked.terminate();
    await until(() => counts()[0] === 20, "all are counted");
    const metrics = new Metrics("gateway");
    measureStreams(metrics, server.gateway.streams);
    expect((await metrics.text()).body).toMatch(/^nodus_open_streams\{kind="events",role="gateway"\} 10$/m);
    expect((await metrics.text()).body).toMatch(/^nodus_open_streams_without_key\{role="gateway"\} 1[01]$/m);
    for (const cut of sockets) cut.terminate();
    for (const cut of requests) cut.destroy();
    await until(() => open() === 0, "nothing is open");
    expect([...counts(), server.gateway.streams.withoutKey, ticker.open]).toEqual([0, 0, 0, 0]);
  });

  it("when a stream could not be opened, or is over at once", async () => {
    const answers = ["subscription { broken }", "{ nope", "subscription { count(to: 2) }", "{ total }"];
    for (const query of answers) await bodyOf(await events(MINE, query));
    await bodyOf(await events("nk_wrong"));
    expect(await keyed("nk_wrong")).toMatch(/^4401 unauthorized/);
    await until(() => open() === 0, "nothing is open");
  });

  it("when the server stops", async () => {
    await Promise.all([keyed(MINE), events(MINE), socket()]);
    await server.app.close();
    await until(() => open() === 0, "nothing is open");
    expect(counts()).toEqual([0, 0]);
  });
});

describe("callers without a key", () => {
  it("give way to newer ones, of whom one with a key gets in and stays", async () => {
    const idle = await Promise.all([socket(), socket(), socket()]);
    const ends = idle.map((waiting) => once(waiting, "close").then(([code, reason]) => `${code} ${reason}`));
    expect(await keyed(MINE)).toBe("connection_ack");
    expect(await Promise.race(ends)).toBe(
      "1013 too_many_without_key: Too many callers without a key are connected. Connect again, and send the key at once.",
    );
    for (let n = 0; n < 6; n++) await greet(await socket());
    await Promise.all(ends);
    expect([server.gateway.streams.withoutKey, ...counts()]).toEqual([3, 1, 0]);
    expect(sockets[3]!.readyState).toBe(WebSocket.OPEN);
  });

  it("are cut off although they do not close in turn", async () => {
    const silent = await socket();
    silent.pause(); // reads no close frame, so it never answers one
    for (let n = 0; n < 3; n++) await socket();
    await until(() => server.gateway.streams.byKind.socket === 3, "the silent one is gone");
  });

  it("share their number with events", async () => {
    const introspection = await events(null, "{ __schema { queryType { name } } }");
    expect(introspection.statusCode).toBe(200);
    await bodyOf(introspection);
    await until(() => server.gateway.streams.withoutKey === 0, "it is over");
  });
});
