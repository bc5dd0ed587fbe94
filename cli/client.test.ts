import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { WebSocketServer } from "ws";
import { ClientError, connect, PlatformLost } from "./client.ts";

/** Something that listens where a platform should. */
async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function thrownBy(work: Promise<unknown>): Promise<Error> {
  return work.then(
    () => {
      throw new Error("nothing was thrown");
    },
    (error: Error) => error,
  );
}

async function askAt(origin: string): Promise<Error> {
  const client = connect(origin, "nk_x");
  onTestFinished(() => client.close());
  return thrownBy(client.query("{ me { id } }"));
}

const graphError = (code: string, status: number) =>
  JSON.stringify({ data: null, errors: [{ message: `It said ${code}.`, extensions: { code, status } }] });

test.each([
  ["a subgraph that is away", 200, graphError("subgraph_unavailable", 503), PlatformLost],
  ["a subgraph that is silent", 200, graphError("subgraph_timeout", 504), PlatformLost],
  ["too many requests", 429, graphError("rate_limited", 429), PlatformLost],
  ["a proxy whose platform is away", 502, "<h1>Bad Gateway</h1>", PlatformLost],
  ["a refusal", 200, graphError("insufficient_scope", 403), ClientError],
  ["a fault", 200, graphError("internal_error", 500), ClientError],
  ["something else that listens there", 404, "<h1>Not found</h1>", ClientError],
  ["something else that answers with JSON", 200, "null", ClientError],
])("%s is told apart as worth trying again or not", async (_, status, body, kind) => {
  const origin = await listening(createServer((_request, response) => response.writeHead(status).end(body)));
  const error = await askAt(origin);
  expect(error.constructor).toBe(kind);
});

test("nobody at the address, and an answer that breaks off, are worth trying again", async () => {
  expect(await askAt("http://127.0.0.1:1")).toMatchObject({ name: "PlatformLost", isUnsent: true });
  const origin = await listening(
    createServer((_request, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write('{"data":', () => response.destroy());
    }),
  );
  expect(await askAt(origin)).toMatchObject({ name: "PlatformLost", isUnsent: false });
});

test("whatever takes a connection and then says nothing is a loss in time", { timeout: 30_000 }, async () => {
  const sockets = new Set<Socket>();
  const silent = createServer(() => {});
  silent.on("connection", (socket) => sockets.add(socket)).on("upgrade", () => {});
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const client = connect(await listening(silent), "nk_x", { answerMs: 200, pingEveryMs: 200, pongMs: 200 });
  onTestFinished(() => client.close());
  expect(await thrownBy(client.query("{ me { id } }"))).toMatchObject({ name: "PlatformLost", isUnsent: false });
  expect(await thrownBy(client.subscribe("subscription { x }", {}).next())).toBeInstanceOf(PlatformLost);
  const opening = client.subscribe("subscription { x }", {}).next();
  await client.close(); // while a connection is being made, which then fails
  await opening.catch(() => {}); // it may end as it likes: nobody waits for it
});

test("a socket that falls silent once it is open is a loss in time", { timeout: 30_000 }, async () => {
  const server = createServer();
  const sockets = new WebSocketServer({ server, handleProtocols: () => "graphql-transport-ws" });
  sockets.on("connection", (socket) => socket.once("message", () => socket.send('{"type":"connection_ack"}')));
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate();
    sockets.close();
  });
  const client = connect(await listening(server), "nk_x", { answerMs: 200, pingEveryMs: 200, pongMs: 200 });
  onTestFinished(() => client.close());
  expect(await thrownBy(client.subscribe("subscription { x }", {}).next())).toBeInstanceOf(PlatformLost);
});

test.each([
  ["a key that ended", 4401, ClientError],
  ["a greeting that came too late", 4408, PlatformLost],
  ["too many streams of the team", 4429, PlatformLost],
  ["a gateway that is busy", 1013, PlatformLost],
  ["a gateway that stops", 1001, PlatformLost],
])("a stream closed for %s is told apart as worth trying again or not", async (_, code, kind) => {
  const server = createServer();
  const sockets = new WebSocketServer({ server, handleProtocols: () => "graphql-transport-ws" });
  sockets.on("connection", (socket) => socket.close(code, "because"));
  onTestFinished(() => sockets.close());
  const client = connect(await listening(server), "nk_x");
  onTestFinished(() => client.close());
  const error = await thrownBy(client.subscribe("subscription { x }", {}).next());
  expect(error.constructor).toBe(kind);
  expect(error.message).toContain("because");
});

test("a stream where nobody listens is worth trying again", async () => {
  const client = connect("http://127.0.0.1:1", "nk_x");
  onTestFinished(() => client.close());
  expect(await thrownBy(client.subscribe("subscription { x }", {}).next())).toBeInstanceOf(PlatformLost);
});
