import { afterAll, beforeAll, expect, test } from "vitest";
import { all } from "../../tests/support/archive-samples.ts";
import { answer, redirect, type SourceServer, type Sources, sources } from "../../tests/support/source-server.ts";
import { type FetchAsk, FetchFailed, type FetchPort } from "./fetch-https.ts";
import { PrivateExceptions } from "./public-address.ts";

let world: Sources;
let one: SourceServer;
let other: SourceServer;
let port: FetchPort;
beforeAll(async () => {
  world = await sources();
  [one, other] = [await world.serve(), await world.serve()];
  port = world.fetch({ idleMs: 1_000 });
}, 30_000);
afterAll(() => world?.close());

const get = (url: string, ask: Partial<FetchAsk> = {}, through = port) =>
  through.get(new URL(url), { signal: new AbortController().signal, ...ask });
const failure = async (work: Promise<unknown>) => {
  const error = await work.then(() => null).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(FetchFailed);
  return (error as FetchFailed).failure;
};

test("an answer comes with its status, its size and its bytes", async () => {
  one.routes.set("/file", answer("hello", { "content-length": "5", "x-one": "1" }, 203));
  const fetched = await get(`${one.origin}/file?a=b`);
  expect(fetched).toMatchObject({ status: 203, declaredBytes: 5 });
  expect(fetched.headers["x-one"]).toBe("1");
  expect((await all(fetched.body)).toString()).toBe("hello");
  expect(one.seen.at(-1)!.path).toBe("/file?a=b");
});

test("a redirect keeps the credential within its origin and drops it for good on the way to another", async () => {
  one.routes.set("/start", redirect("/second"));
  one.routes.set("/second", redirect(`${other.origin}/third`, 307));
  other.routes.set("/third", redirect(`${one.origin}/end`));
  one.routes.set("/end", answer("end"));
  one.seen.length = other.seen.length = 0;
  const fetched = await get(`${one.origin}/start`, { authorization: "Bearer s3cret" });
  expect(fetched.url.href).toBe(`${one.origin}/end`);
  await fetched.discard();
  expect(one.seen).toEqual([
    { path: "/start", authorization: "Bearer s3cret" },
    { path: "/second", authorization: "Bearer s3cret" },
    { path: "/end", authorization: undefined },
  ]);
  expect(other.seen).toEqual([{ path: "/third", authorization: undefined }]);
});

test("five redirects are followed and no more", async () => {
  for (let i = 0; i < 7; i++) one.routes.set(`/hop/${i}`, redirect(`/hop/${i + 1}`));
  one.routes.set("/hop/7", answer("there"));
  expect((await get(`${one.origin}/hop/2`)).status).toBe(200);
  expect(await failure(get(`${one.origin}/hop/1`))).toBe("too_many_redirects");
});

test.for<[string, string, string]>([
  ["a private address", "https://10.0.0.1/x", "private_address"],
  ["the address of a cloud's metadata", "https://169.254.169.254/latest", "private_address"],
  ["an address written as one number", "https://2130706433/", "private_address"],
  ["an address inside IPv6", "https://[::ffff:127.0.0.1]/", "private_address"],
  ["an address without TLS", "http://localhost/", "not_https"],
  ["a file", "file:///etc/passwd", "not_https"],
  ["nowhere", "https://%%%", "unreachable"],
])("a redirect to %s is not followed", async ([, location, wanted]) => {
  one.routes.set("/trap", redirect(location));
  expect(await failure(get(`${one.origin}/trap`))).toBe(wanted);
});

test("a name that resolves to a private address is refused before anything is sent", async () => {
  one.seen.length = 0;
  const closed = world.fetch({ exceptions: new PrivateExceptions([]) });
  expect(await failure(get(`${one.origin}/file`, {}, closed))).toBe("private_address");
  expect(one.seen).toEqual([]);
});

test("a name without an address is told from a machine where nobody listens", async () => {
  const gone = await world.serve();
  await gone.close();
  expect(await failure(get("https://no-such-name.invalid/"))).toBe("unknown_name");
  expect(await failure(get(`${gone.origin}/`))).toBe("unreachable");
});

test("a certificate of an unknown authority, or of another name, is not trusted", async () => {
  const stranger = await sources();
  try {
    expect(await failure(get(`${one.origin}/file`, {}, stranger.fetch()))).toBe("untrusted_certificate");
    const misnamed = await world.serve(["elsewhere.example"]);
    expect(await failure(get(`${misnamed.origin}/file`))).toBe("untrusted_certificate");
  } finally {
    await stranger.close();
  }
});

test("a server that says nothing, or stops in the middle, is given up", async () => {
  one.routes.set("/silent", () => {});
  one.routes.set("/stalls", (_, response) => void response.writeHead(200).write("a beginning"));
  expect(await failure(get(`${one.origin}/silent`))).toBe("timeout");
  expect(await failure(get(`${one.origin}/stalls`).then(({ body }) => all(body)))).toBe("timeout");
});

test("a body shorter than it was said to be has broken off", async () => {
  one.routes.set("/short", (_, response) => {
    response.writeHead(200, { "content-length": "1000" }).write("less");
    setTimeout(() => response.destroy(), 50);
  });
  expect(await failure(get(`${one.origin}/short`).then(({ body }) => all(body)))).toBe("unreachable");
});

test("the caller's signal ends a fetch at any time, with its own reason", async () => {
  const gone = new AbortController();
  const reason = new Error("enough");
  one.routes.set("/endless", (_, response) => void response.writeHead(200).write("a beginning"));
  const { body } = await get(`${one.origin}/endless`, { signal: gone.signal });
  const reading = all(body);
  gone.abort(reason);
  await expect(reading).rejects.toBe(reason);
  await expect(get(`${one.origin}/endless`, { signal: gone.signal })).rejects.toBe(reason);
});
