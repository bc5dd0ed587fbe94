import { once } from "node:events";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { onceClosed } from "./once-closed.ts";

/** A server, and the first answer that it is asked for, which it has not begun. */
async function asked(): Promise<{ request: http.ClientRequest; response: ServerResponse }> {
  const server = http.createServer().listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const request = http.get({
    port: (server.address() as AddressInfo).port,
    agent: new http.Agent({ keepAlive: true }),
  });
  request.on("error", () => {}); // cut off by the test
  const [, response] = (await once(server, "request")) as [IncomingMessage, ServerResponse];
  return { request, response };
}

const closing = (response: ServerResponse) => new Promise<void>((resolve) => onceClosed(response, resolve));

test("an answer is over when it has been sent, though its connection stays", async () => {
  const { response } = await asked();
  const closed = closing(response);
  response.end("all");
  await closed;
  expect(response.writableFinished).toBe(true);
});

test("an answer is over when its client goes, and whoever asks later is told at once", async () => {
  const { request, response } = await asked();
  const closed = closing(response);
  request.destroy();
  await closed;
  let calls = 0;
  onceClosed(response, () => calls++);
  expect(calls).toBe(1);
});
