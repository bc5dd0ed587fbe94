import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Served, served, WITH_KEY } from "../tests/federation/served.ts";
import { shop } from "../tests/federation/shop.ts";
import { documentHash } from "./documents.ts";

let server: Served;
beforeAll(async () => {
  const helpUrl = (code: string) => `https://nodus.test/help/errors#${code}`;
  server = await served(shop(), {}, { allowedOrigins: ["https://console.example"], graphiql: true, helpUrl });
});
afterAll(() => server.close());

const codesOf = async (response: Response) =>
  ((await response.json()) as { errors: { extensions: { code: string } }[] }).errors.map((e) => e.extensions.code);
const get = (params: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(`${server.url}/graphql?${new URLSearchParams(params)}`, {
    headers: { ...WITH_KEY, "apollo-require-preflight": "1", ...headers },
  });

describe("GraphQL over HTTP", () => {
  it("answers POST and GET on one path", async () => {
    const posted = await server.post({ query: "{ me { name orders { id } } }" });
    expect(posted.status).toBe(200);
    expect(await posted.json()).toEqual({ data: { me: { name: "Ada", orders: [{ id: "u1-o1" }] } } });
    const got = await get({ query: "query ($id: ID!) { person(id: $id) { name } }", variables: '{"id":"u5"}' });
    expect(await got.json()).toEqual({ data: { person: { name: "Person u5" } } });
  });

  it("picks the operation by name, and says when it can't", async () => {
    const query = "query A { me { id } } query B { total }";
    expect(await (await server.post({ query, operationName: "B" })).json()).toEqual({ data: { total: 1 } });
    const unclear = await server.post({ query });
    expect([unclear.status, await codesOf(unclear)]).toEqual([400, ["OPERATION_RESOLUTION_FAILURE"]]);
  });

  it("refuses a mutation by GET", async () => {
    const response = await get({ query: 'mutation { rename(id: "u1", name: "x") { name } }' });
    expect(response.status).toBe(405);
  });

  it("refuses a request that a foreign page could send without asking first", async () => {
    const simple = await fetch(`${server.url}/graphql`, {
      method: "POST",
      headers: { "content-type": "text/plain" },
      body: '{"query":"{ total }"}',
    });
    expect([simple.status, await codesOf(simple)]).toEqual([400, ["BAD_REQUEST"]]);
    const form = await fetch(`${server.url}/graphql`, {
      method: "POST",
      body: new URLSearchParams({ query: "{ total }" }),
    });
    expect(form.status).toBe(400);
    expect((await fetch(`${server.url}/graphql?query={total}`, { headers: WITH_KEY })).status).toBe(400);
  });

  it("answers malformed JSON, arrays and repeats of bodies with 400", async () => {
    expect(await codesOf(await server.post('{"query":'))).toEqual(["invalid_json"]);
    expect(await codesOf(await server.post("[]"))).toEqual(["invalid_json"]);
    expect((await server.post('{"query": 7}')).status).toBe(400);
    expect((await server.post({ query: "{ total }", variables: "no" })).status).toBe(400);
  });

  it("answers a body above the limit with 413 and a request id", async () => {
    const response = await server.post({ query: `{ total } #${"x".repeat(1024 * 1024)}` });
    expect([response.status, await codesOf(response)]).toEqual([413, ["body_too_large"]]);
    expect(response.headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
  });

  it("says which code a syntax error and an invalid field have", async () => {
    const broken = await server.post({ query: "{ total" });
    expect([broken.status, await codesOf(broken)]).toEqual([400, ["GRAPHQL_PARSE_FAILED"]]);
    const invalid = await server.post({ query: "{ nope nada }" });
    expect([invalid.status, await codesOf(invalid)]).toEqual([
      400,
      ["GRAPHQL_VALIDATION_FAILED", "GRAPHQL_VALIDATION_FAILED"],
    ]);
    const variable = await server.post({ query: "query ($id: ID!) { person(id: $id) { id } }" });
    expect([variable.status, await codesOf(variable)]).toEqual([400, ["BAD_USER_INPUT"]]);
  });

  it("points subscriptions to the streams", async () => {
    const response = await server.post({ query: "subscription { count(to: 1) }" });
    expect([response.status, await codesOf(response)]).toEqual([400, ["subscription_needs_stream"]]);
  });

  it("masks a fault and keeps the request id in answer, error and log", async () => {
    const response = await server.post({ query: "{ boom }" }, { "x-request-id": "abc-1" });
    const body = await response.text();
    expect(response.headers.get("x-request-id")).toBe("abc-1");
    expect(body).not.toContain("secret");
    expect(JSON.parse(body)).toMatchObject({
      data: { boom: null },
      errors: [{ path: ["boom"], extensions: { code: "internal_error", requestId: "abc-1" } }],
    });
    expect(server.lines.some((l) => l.requestId === "abc-1" && JSON.stringify(l).includes("secret row"))).toBe(true);
  });

  it("takes only a sane request id from outside", async () => {
    const response = await server.post({ query: "{ total }" }, { "x-request-id": "a b\tc" });
    expect(response.headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
  });
});

describe("a body that does not come to its end", () => {
  it.each(["/graphql", "/graphql/stream", "/nowhere"])("is waited for no longer than it may take: %s", async (path) => {
    const hasty = await served(shop(), {}, { bodyMs: 100 });
    onTestFinished(() => hasty.close());
    const headers = { "content-type": "application/json", "content-length": "100" };
    const request = http.request(`${hasty.url}${path}`, { method: "POST", headers });
    request.write("{");
    const [response] = (await once(request, "response")) as [IncomingMessage];
    expect(response.statusCode).toBe(408);
  });
});

describe("credentials", () => {
  it("refuses data without a key, and a wrong key for anything", async () => {
    const none = await server.post({ query: "{ total }" }, { authorization: "" });
    expect(none.status).toBe(401);
    const wrong = await server.post({ query: "{ __typename }" }, { authorization: "Bearer nk_wrong" });
    expect([wrong.status, await codesOf(wrong)]).toEqual([401, ["unauthorized"]]);
    expect(wrong.headers.get("www-authenticate")).toBe("Bearer");
  });

  it("lets the graph's own types be read without a key", async () => {
    const response = await fetch(`${server.url}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query: "{ __schema { queryType { name } } __typename }" }),
    });
    expect(await response.json()).toEqual({
      data: { __schema: { queryType: { name: "Query" } }, __typename: "Query" },
    });
  });
});

describe("persisted queries", () => {
  it("asks for the text once, then answers the hash alone", async () => {
    const query = "{ total people { id } }";
    const extensions = { persistedQuery: { version: 1, sha256Hash: documentHash(query) } };
    expect(await codesOf(await server.post({ extensions }))).toEqual(["PERSISTED_QUERY_NOT_FOUND"]);
    expect(await (await server.post({ query, extensions })).json()).toMatchObject({ data: { total: 1 } });
    expect(await (await server.post({ extensions })).json()).toMatchObject({ data: { total: 1 } });
  });
});

describe("pages from elsewhere", () => {
  const preflight = (origin: string) =>
    fetch(`${server.url}/graphql`, {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization" },
    });

  it("may call from an allowed origin and from no other", async () => {
    expect((await preflight("https://console.example")).headers.get("access-control-allow-origin")).toBe(
      "https://console.example",
    );
    expect((await preflight("https://evil.example")).headers.get("access-control-allow-origin")).toBeNull();
  });
});

describe("a path that is none", () => {
  it("is told where the faces are", async () => {
    const response = await fetch(`${server.url}/`);
    expect([response.status, await response.json()]).toEqual([
      404,
      {
        error: "not_found",
        message: "There is no such path.",
        fix: expect.stringContaining("/graphql"),
        url: "https://nodus.test/help/errors#not_found",
        request_id: response.headers.get("x-request-id"),
      },
    ]);
  });
});
