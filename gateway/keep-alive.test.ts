import { EventEmitter, once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
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

/** A watched socket that never hears an answer, with a wire whose figures the test sets; whether it was cut off. */
function unanswered() {
  vi.useFakeTimers();
  closers.push(() => vi.useRealTimers());
  const wire = { bytesWritten: 0, writableLength: 0 };
  let isCut = false;
  const socket = Object.assign(new EventEmitter(), {
    ping: () => {},
    terminate: () => {
      isCut = true;
    },
  });
  closers.push(keepAlive(socket as unknown as WebSocket, wire, EVERY_MS));
  return { wire, isCut: () => isCut, pass: (looks: number) => vi.advanceTimersByTime(looks * EVERY_MS) };
}

test("a reader that is behind and takes something between any two looks is left alone, however late it answers", () => {
  const { wire, isCut, pass } = unanswered();
  for (let look = 0; look < 20; look++) {
    wire.bytesWritten += 1_000;
    wire.writableLength = 500 + (look % 2);
    pass(1);
  }
  expect(isCut()).toBe(false);
  pass(1);
  expect(isCut()).toBe(true);
});

test("what the kernel took for a reader that is not behind proves nothing", () => {
  const { wire, isCut, pass } = unanswered();
  for (let look = 0; look < 2; look++) {
    wire.bytesWritten += 1_000;
    pass(1);
  }
  expect(isCut()).toBe(true);
});
