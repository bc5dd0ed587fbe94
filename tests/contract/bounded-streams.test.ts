import { once } from "node:events";
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { OpenStreams } from "../../gateway/open-streams.ts";
import { until } from "../federation/served.ts";
import { authorization, type Face, face } from "./small-face.ts";

const BODY_MS = 500;

let streams: OpenStreams;
let rest: Face;
let port: number;
const requests: ClientRequest[] = [];

beforeEach(async () => {
  streams = new OpenStreams({ perTeam: 2, withoutKey: 1 });
  rest = await face({ thing: () => ({ id: "thing_1" }) }, undefined, streams, BODY_MS);
  await rest.app.listen({ port: 0, host: "127.0.0.1" });
  port = (rest.app.server.address() as AddressInfo).port;
});
afterEach(() => {
  for (const request of requests.splice(0)) request.destroy();
});

/** A request whose body is still to end. */
function begin(method: string, path: string, agent: http.Agent | false = false): ClientRequest {
  const request = http.request({ port, method, path, agent, headers: { authorization } });
  request.on("error", () => {}); // cut off by the test
  requests.push(request);
  return request;
}

async function answerTo(
  request: ClientRequest,
): Promise<{ status: number; headers: IncomingMessage["headers"]; text: string }> {
  const [response] = (await once(request.end(), "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode!, headers: response.headers, text };
}

const open = () => streams.ofTeam("t");

it("counts an upload while it lasts, and refuses one too many with 429, the limit and the time to wait", async () => {
  const uploads = [begin("PUT", "/v1/things/x/content"), begin("PUT", "/v1/things/x/content")];
  for (const upload of uploads) upload.write("abc");
  await until(() => open() === 2, "both are counted");
  const refused = await answerTo(begin("GET", "/v1/things/x/content"));
  expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "5"]);
  expect(JSON.parse(refused.text)).toEqual({
    error: "too_many_streams",
    message: "The team has too many streams open. The limit is 2.",
    fix: "Close some, or wait until some end.",
    url: "https://nodus.test/help#too_many_streams",
    limit: 2,
    seen: 3,
  });
  const other = await answerTo(begin("GET", "/v1/things/x"));
  expect(other.status, "what is no stream is not counted").toBe(200);
  uploads[0]!.destroy();
  await until(() => open() === 1, "the upload that was cut off counts no longer");
  expect((await answerTo(begin("GET", "/v1/things/x/content"))).text).toBe("abc");
  expect((await answerTo(uploads[1]!)).status).toBe(200);
  await until(() => open() === 0, "all is over");
});

it("cuts off a client that does not come to the end of what is no file, and one whose file was refused", async () => {
  const file = begin("PUT", "/v1/things/x/content");
  file.write("abc");
  await until(() => open() === 1, "the file is being taken");
  const slow = begin("POST", "/v1/things");
  slow.setHeader("idempotency-key", "k1");
  const late = once(slow, "response");
  slow.write("{");
  expect(((await late) as [IncomingMessage])[0].statusCode).toBe(408);
  const stranger = begin("PUT", "/v1/things/x/content", new http.Agent({ keepAlive: true }));
  stranger.setHeader("authorization", "Bearer bad");
  const refused = once(stranger, "response");
  stranger.write("abc");
  const [response] = (await refused) as [IncomingMessage];
  expect(response.resume().statusCode).toBe(401);
  await once(response.socket, "close");
  expect((await answerTo(file)).status, "a file may take as long as it needs").toBe(200);
});
