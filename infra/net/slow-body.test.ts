import { once } from "node:events";
import http, { type IncomingMessage, type RequestListener } from "node:http";
import net, { type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { cutSlowBody } from "./slow-body.ts";

const WITHIN_MS = 100;

/** A connection to a server that answers so, and all that the server says on it until it is closed. */
async function connected(answer: RequestListener): Promise<{ wire: Socket; said: Promise<string> }> {
  const server = http.createServer((request, response) => {
    cutSlowBody(request, response, WITHIN_MS);
    answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const wire = net.connect((server.address() as AddressInfo).port, "127.0.0.1");
  onTestFinished(() => void wire.destroy());
  let text = "";
  wire.on("data", (chunk) => {
    text += chunk;
  });
  wire.on("error", () => {}); // cut off by the server
  return { wire, said: once(wire, "close").then(() => text) };
}

const HEAD = "POST / HTTP/1.1\r\nHost: x\r\n";
const read = async (request: IncomingMessage) => {
  let bytes = 0;
  for await (const chunk of request) bytes += (chunk as Buffer).length;
  return bytes;
};

test.each([
  ["of a length that was announced", `${HEAD}Content-Length: 10\r\n\r\nabc`],
  ["in chunks", `${HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`],
])("a body %s that does not come to its end is told so and cut off", async (_what, sent) => {
  const { wire, said } = await connected((request) => read(request).catch(() => {})); // broke off
  wire.write(sent);
  expect(await said).toMatch(/^HTTP\/1\.1 408 /);
});

test("a client that has been answered and goes on sending is cut off", async () => {
  const { wire, said } = await connected((request, response) => {
    request.resume();
    response.end("no");
  });
  wire.write(`${HEAD}Content-Length: 10\r\n\r\nabc`);
  const text = await said;
  expect(text).toMatch(/^HTTP\/1\.1 200 /);
  expect(text).not.toContain("408");
});

test("a request that is whole is left alone, however late it is read or answered", async () => {
  const { wire, said } = await connected(async (request, response) => {
    await sleep(3 * WITHIN_MS);
    response.setHeader("connection", "close").end(`${await read(request)} bytes`);
  });
  wire.write(`${HEAD}Content-Length: 3\r\n\r\nabc`);
  expect(await said).toMatch(/3 bytes$/);
  const empty = await connected(async (_request, response) => {
    await sleep(3 * WITHIN_MS);
    response.setHeader("connection", "close").end("well");
  });
  empty.wire.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(await empty.said).toMatch(/well$/);
});
