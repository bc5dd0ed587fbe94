import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type Authority, testAuthority } from "../../tests/support/authority.ts";
import { hang, httpsReceiver, type Receiver, status } from "../../tests/support/https-receiver.ts";
import { openPost, type PostAsk, type Posted } from "./post-https.ts";
import { PrivateExceptions } from "./public-address.ts";

const LOCAL = new PrivateExceptions(["localhost", "127.0.0.0/8", "::1"]);
let authority: Authority;
let receiver: Receiver;
const closed: Receiver[] = [];

beforeAll(async () => {
  authority = await testAuthority();
});
beforeEach(async () => {
  receiver = await opened();
});
afterEach(() => Promise.all(closed.splice(0).map((one) => one.close())));

async function opened(hosts?: readonly string[]): Promise<Receiver> {
  const one = await httpsReceiver(authority, hosts);
  closed.push(one);
  return one;
}

function post(
  over: Partial<PostAsk> = {},
  exceptions = LOCAL,
  ca: string | undefined = authority.caPem,
): Promise<Posted> {
  return openPost({ exceptions, ...(ca ? { ca } : {}) }).post({
    url: `${receiver.origin}/hook?x=1`,
    headers: { "content-type": "application/json", "x-a": "b" },
    body: Buffer.from('{"a":"ä"}'),
    timeoutMs: 5_000,
    maxAnswerBytes: 0,
    signal: new AbortController().signal,
    ...over,
  });
}

const failed = (failure: string) => ({ outcome: "failed", failure });

test("the body arrives as it is, with its headers, and the status comes back", async () => {
  receiver.answer(status(202));
  expect(await post()).toMatchObject({ outcome: "answered", status: 202 });
  expect(receiver.received).toMatchObject([
    { path: "/hook?x=1", body: '{"a":"ä"}', headers: { "x-a": "b", "content-length": "10" } },
  ]);
});

test("a redirect is an answer and is not followed", async () => {
  const other = await opened();
  receiver.answer(status(307, { location: `${other.origin}/` }));
  expect(await post()).toMatchObject({ status: 307 });
  expect(other.received).toEqual([]);
});

test("a receiver that hangs or drips is left when its time is over, and its connection with it", async () => {
  receiver.answer(hang);
  expect(await post({ timeoutMs: 200 })).toEqual(failed("timeout"));
  receiver.answer((_, response) => {
    response.writeHead(200);
    const drip = setInterval(() => response.write("x"), 20);
    response.on("close", () => clearInterval(drip));
  });
  expect(await post({ timeoutMs: 300, maxAnswerBytes: 1_000_000 })).toEqual(failed("timeout"));
  await expect.poll(() => receiver.open.now).toBe(0);
});

test("a machine that accepts connections and never speaks TLS is left when its time is over", async () => {
  const mute = createServer((socket) => void socket.on("error", () => {}).resume()).listen(0, "localhost");
  await once(mute, "listening");
  const { port } = mute.address() as AddressInfo;
  expect(await post({ url: `https://localhost:${port}/`, timeoutMs: 200 })).toEqual(failed("timeout"));
  mute.close();
  await once(mute, "close"); // only once no connection is left
});

test("a huge answer is not read: its status counts, or its size ends it", async () => {
  let sent = 0;
  receiver.answer((_, response) => {
    response.writeHead(200);
    const more = (): void => {
      while (!response.destroyed && response.write("x".repeat(65_536))) sent += 65_536;
      if (!response.destroyed) response.once("drain", more);
    };
    more();
  });
  expect(await post()).toMatchObject({ outcome: "answered", status: 200 });
  expect(await post({ maxAnswerBytes: 64 * 1024 })).toEqual(failed("answer_too_large"));
  await expect.poll(() => receiver.open.now).toBe(0);
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});

test("an answer within its bound is read to its end", async () => {
  receiver.answer((_, response) => void response.writeHead(200).end('{"ok":true}'));
  expect(await post({ maxAnswerBytes: 11 })).toMatchObject({ status: 200, body: Buffer.from('{"ok":true}') });
});

test("certificates are verified: their issuer, and that they are for the host", async () => {
  expect(await post({}, LOCAL, "")).toEqual(failed("tls_untrusted"));
  const other = await opened(["elsewhere.example"]);
  expect(await post({ url: other.origin })).toEqual(failed("tls_host_mismatch"));
  expect(receiver.received.concat(other.received)).toEqual([]);
});

test("private addresses are not reached, however they are written", async () => {
  const none = new PrivateExceptions([]);
  expect(await post({}, none)).toEqual(failed("private_address"));
  expect(await post({ url: `https://127.0.0.1:${receiver.port}/` }, none)).toEqual(failed("private_address"));
  expect(await post({ url: `https://[::ffff:127.0.0.1]:${receiver.port}/` }, none)).toEqual(failed("private_address"));
  expect(receiver.received).toEqual([]);
});

test("a name that is nowhere, a closed port and a broken connection are told apart from answers", async () => {
  expect(await post({ url: "https://no-such-name.invalid/" })).toEqual(failed("name_unknown"));
  receiver.answer((_, response) => void response.socket!.destroy());
  expect(await post()).toEqual(failed("connection_failed"));
  await closed.pop()!.close();
  expect(await post()).toEqual(failed("connection_failed"));
});

test("the caller's signal ends it at once", async () => {
  receiver.answer(hang);
  const abort = new AbortController();
  const posted = post({ signal: abort.signal });
  await expect.poll(() => receiver.received.length).toBe(1);
  abort.abort();
  expect(await posted).toEqual(failed("interrupted"));
  expect(await post({ signal: abort.signal })).toEqual(failed("interrupted"));
});
