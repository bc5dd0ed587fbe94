import Fastify from "fastify";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { contractOf } from "../../rest-compat/contract.ts";
import { type RestOptions, restCompat } from "../../rest-compat/run.ts";
import { smallContract } from "./small-contract.ts";
import { authorization, create, face, made } from "./small-face.ts";

describe("routes", () => {
  it("asks for credentials before anything else", async () => {
    const { app, ran } = await face(made);
    for (const header of [undefined, "Bearer bad"]) {
      const answer = await app.inject(create("{", header ? { authorization: header } : { authorization: "" }));
      expect([answer.statusCode, answer.json().error, answer.headers["www-authenticate"]]).toEqual([
        401,
        "unauthorized",
        "Bearer",
      ]);
    }
    expect(ran).toEqual([]);
  });

  it("answers 501 to a documented operation without a row, after authentication", async () => {
    const { app } = await face();
    expect((await app.inject({ method: "POST", url: "/v1/later" })).statusCode).toBe(401);
    const answer = await app.inject({
      method: "POST",
      url: "/v1/later",
      headers: { authorization, "content-type": "application/json" },
      payload: "{}",
    });
    expect([answer.statusCode, answer.json().code]).toEqual([501, "not_implemented"]);
  });

  it("answers 405 with Allow to another method of a known path and 404 to an unknown path", async () => {
    const { app } = await face();
    const wrong = await app.inject({ method: "PATCH", url: "/v1/things" });
    expect([wrong.statusCode, wrong.headers.allow, wrong.json().error]).toEqual([
      405,
      "GET, HEAD, POST",
      "method_not_allowed",
    ]);
    for (const url of ["/v1", "/v1/", "/v1/nothing", "/v1/things/a/b/c"])
      expect((await app.inject({ url })).json().error).toBe("not_found");
  });

  it("answers a path that cannot be decoded, and finds long path values", async () => {
    const { app } = await face({ thing: ({ id }: { id: string }) => ({ id, note: null, goneAt: null }) });
    const broken = await app.inject({ url: "/v1/things/%zz", headers: { authorization } });
    expect([broken.statusCode, broken.json().error]).toEqual([400, "invalid_request"]);
    const long = "x".repeat(500);
    expect((await app.inject({ url: `/v1/things/${long}`, headers: { authorization } })).json().id).toBe(long);
  });

  it("refuses a server that was not made for it", async () => {
    const contractOnly = { contract: contractOf(smallContract) } as RestOptions;
    await expect(Fastify().register(restCompat, contractOnly)).rejects.toThrow("REST_SERVER_OPTIONS");
  });

  it("refuses what clients call beyond the contract by name", async () => {
    const { app } = await face();
    expect((await app.inject({ url: "/v1/extra" })).statusCode).toBe(401);
    expect((await app.inject({ url: "/v1/extra", headers: { authorization } })).json()).toMatchObject({
      error: "not_here",
      fix: "Use something else.",
    });
    expect((await app.inject({ method: "POST", url: "/v1/open" })).statusCode).toBe(501);
  });

  it("passes raw bodies through to a bytes row and answers with its document", async () => {
    const { app, uploaded } = await face({ thing: () => ({ id: "thing_1" }) });
    const payload = Buffer.alloc(LIMITS.jsonBodyBytes + 1, 7);
    const answer = await app.inject({
      method: "PUT",
      url: "/v1/things/x/content",
      headers: { authorization, "content-type": "application/octet-stream" },
      payload,
    });
    expect(answer.json()).toEqual({ id: "thing_1" });
    expect(Buffer.concat(uploaded).equals(payload)).toBe(true);
  });

  it("answers HEAD with the headers of GET and no stream", async () => {
    const { app } = await face();
    const [get, head] = await Promise.all(
      (["GET", "HEAD"] as const).map((method) =>
        app.inject({ method, url: "/v1/things/x/content", headers: { authorization } }),
      ),
    );
    expect([get!.body, get!.headers["content-length"]]).toEqual(["abc", "3"]);
    expect([head!.body, head!.headers["content-length"]]).toEqual(["", "3"]);
  });

  it("tells the graph when the caller goes away, and only then", async () => {
    const signals: AbortSignal[] = [];
    let release = () => {};
    const waiting = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { app } = await face({ createThing: () => waiting.then(() => made.createThing()) }, (signal) =>
      signals.push(signal),
    );
    const origin = await app.listen({ port: 0, host: "127.0.0.1" });
    const init = { method: "POST", headers: create({}).headers, body: "{}" };
    const leaving = new AbortController();
    const left = fetch(`${origin}/v1/things`, { ...init, signal: leaving.signal });
    const stayed = fetch(`${origin}/v1/things`, init);
    await expect.poll(() => signals.length).toBe(2);
    leaving.abort();
    await expect(left).rejects.toThrow();
    await expect.poll(() => signals.map((signal) => signal.aborted).sort()).toEqual([false, true]);
    release();
    const answer = await stayed;
    expect([answer.status, await answer.json()]).toEqual([202, { id: "thing_1", gone_at: null }]);
    expect(signals.map((signal) => signal.aborted).sort()).toEqual([false, true]);
  });

  it("still answers a client that sends more than it may", async () => {
    const { app } = await face(made);
    const origin = await app.listen({ port: 0, host: "127.0.0.1" });
    const body = new Blob([new Uint8Array(LIMITS.jsonBodyBytes + 1_000_000)]).stream();
    const init = { method: "POST", headers: create({}).headers, body, duplex: "half" };
    const answer = await fetch(`${origin}/v1/things`, init as RequestInit);
    expect(answer.status).toBe(413);
    await answer.body?.cancel();
  });
});
