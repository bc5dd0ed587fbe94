import { createServer } from "node:http";
import { type AddressInfo, createServer as createSocketServer, type Server } from "node:net";
import { afterEach, expect, test } from "vitest";
import { openSocketStream, StreamLost } from "./websocket.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function listening(server: Server): Promise<URL> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  closing.push(() => server.close());
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`);
}

const open = (url: URL, signal?: AbortSignal) =>
  openSocketStream(url, {}, { query: "subscription { ticks }", variables: {} }, 10_000, signal);

test("a stream to a subgraph that refuses connections is lost, and the process that asked lives on", async () => {
  const server = createSocketServer();
  const url = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  await expect(open(url)).rejects.toBeInstanceOf(StreamLost);
});

test("a stream to a subgraph that hangs up before it answers is lost", async () => {
  const url = await listening(createSocketServer((socket) => socket.destroy()));
  await expect(open(url)).rejects.toBeInstanceOf(StreamLost);
});

test("a stream to something that speaks no WebSocket is lost", async () => {
  const url = await listening(createServer((_, answer) => answer.writeHead(503).end()));
  await expect(open(url)).rejects.toBeInstanceOf(StreamLost);
});

test("a stream that nobody wants any more while it connects is given up", async () => {
  const url = await listening(
    createSocketServer((socket) => {
      socket.on("error", () => {}); // cut off by the one who gave up
      closing.push(() => socket.destroy());
    }),
  );
  const wanted = new AbortController();
  const opened = open(url, wanted.signal);
  setTimeout(() => wanted.abort(), 50);
  await expect(opened).rejects.toThrow("given up");
});
