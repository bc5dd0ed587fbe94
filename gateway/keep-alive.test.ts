import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { keepAlive } from "./keep-alive.ts";

const EVERY_MS = 60;
/** Much more than sockets and kernel hold between two processes. */
const MESSAGE = Buffer.alloc(256 * 1024, "x");
const MESSAGES = 200;

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A watched socket on the server's side and its reader; what was said when it was closed, once it is. */
async function connected(): Promise<{ server: WebSocket; reader: WebSocket; closed: Promise<number> }> {
  const wss = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  closers.push(() => wss.close());
  await once(wss, "listening");
  const accepted = once(wss, "connection");
  const reader = new WebSocket(`ws://127.0.0.1:${(wss.address() as AddressInfo).port}`);
  closers.push(() => reader.terminate());
  reader.on("error", () => {}); // cut off, which the test expects or finds out
  const [server, request] = (await accepted) as [WebSocket, { socket: Socket }];
  await once(reader, "open");
  closers.push(keepAlive(server, request.socket, EVERY_MS));
  const closed = once(server, "close").then(([code]) => code as number);
  return { server, reader, closed };
}

/** Sends one message after another, each when the one before has left; false once the socket is gone. */
async function sendAll(server: WebSocket): Promise<boolean> {
  for (let n = 0; n < MESSAGES; n++) {
    const failed = await new Promise<Error | undefined>((resolve) => server.send(MESSAGE, (error) => resolve(error)));
    if (failed) return false;
  }
  return true;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test("a reader that answers is left alone, on a silent socket too", async () => {
  const { reader } = await connected();
  let pings = 0;
  reader.on("ping", () => pings++);
  await expect.poll(() => pings, { timeout: 5_000 }).toBeGreaterThan(4);
  expect(reader.readyState).toBe(WebSocket.OPEN);
});

test("a reader that does not answer is cut off", async () => {
  const { reader, closed } = await connected();
  reader.pause();
  expect(await closed).toBe(1006);
});

test("a reader that stalls with much before it is cut off", async () => {
  const { server, reader, closed } = await connected();
  reader.pause();
  const sent = sendAll(server);
  expect(await closed).toBe(1006);
  expect(await sent).toBe(false);
});

test("a reader that is slow, and so answers late, has it all", { timeout: 30_000 }, async () => {
  const { server, reader } = await connected();
  let seen = 0;
  reader.on("message", () => {
    if (++seen % 4 !== 0) return;
    reader.pause();
    setTimeout(() => reader.resume(), 15);
  });
  const startedAt = performance.now();
  expect(await sendAll(server)).toBe(true);
  await expect.poll(() => seen, { timeout: 20_000 }).toBe(MESSAGES);
  expect(performance.now() - startedAt).toBeGreaterThan(6 * EVERY_MS);
  await pause(3 * EVERY_MS);
  expect(reader.readyState).toBe(WebSocket.OPEN);
});
