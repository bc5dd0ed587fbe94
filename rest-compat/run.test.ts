import { Readable } from "node:stream";
import Fastify, { type FastifyInstance } from "fastify";
import { buildSchema, type DocumentNode, execute, GraphQLError, parse } from "graphql";
import { afterEach, describe, expect, it } from "vitest";
import type { Actor } from "../infra/kernel/actor.ts";
import { LIMITS } from "../infra/kernel/limits.ts";
import { COMMON, refusals } from "../infra/kernel/refusal.ts";
import { contractOf, type OpenApi } from "./contract.ts";
import type { Extension } from "./extension.ts";
import type { RestPorts } from "./ports.ts";
import type { Table } from "./row.ts";
import { type RestOptions, restCompat } from "./run.ts";
import { REST_SERVER_OPTIONS } from "./server-options.ts";

/** A small face with the shapes that the real one has: open and closed bodies, maps, keys, both envelopes, bytes. */
const contract: OpenApi = {
  paths: {
    "/v1/things": {
      get: {
        operationId: "listThings",
        parameters: [
          { name: "limit", in: "query", schema: { type: "integer", minimum: 1, maximum: 10, default: 5 } },
          { name: "after", in: "query", schema: { type: "string", maxLength: 4 } },
        ],
        responses: { 200: json({ type: "object" }), default: error("Error") },
      },
      post: {
        operationId: "createThing",
        parameters: [{ name: "Idempotency-Key", in: "header", required: true, schema: { type: "string" } }],
        requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/ThingCreate" } } } },
        responses: { 202: json({ $ref: "#/components/schemas/Thing" }), default: error("Error") },
      },
    },
    "/v1/things/{id}": {
      get: {
        operationId: "getThing",
        parameters: [inPath("id")],
        responses: { 200: json({ $ref: "#/components/schemas/Thing" }), default: error("SandboxError") },
      },
      delete: {
        operationId: "deleteThing",
        parameters: [inPath("id")],
        responses: { 204: {}, default: error("Error") },
      },
    },
    "/v1/things/{id}/content": {
      get: { operationId: "readThing", parameters: [inPath("id")], responses: { 200: {}, default: error("Error") } },
      put: {
        operationId: "writeThing",
        parameters: [inPath("id")],
        responses: { 200: json({}), default: error("Error") },
      },
    },
    "/v1/later": { post: { operationId: "laterThing", responses: { 200: json({}), default: error("SandboxError") } } },
  },
  components: {
    schemas: {
      ThingCreate: {
        type: "object",
        properties: {
          name: { type: "string" },
          settings: {
            type: ["object", "null"],
            properties: { max_cost_usd: { type: "number" }, env_vars: { type: "object" } },
          },
          strict: {
            type: "object",
            additionalProperties: false,
            properties: { only_this: { type: "integer" } },
            required: ["only_this"],
          },
        },
      },
      Thing: {
        type: "object",
        properties: { id: { type: "string" }, note: { type: "string" }, gone_at: { type: ["string", "null"] } },
      },
      Error: { type: "object" },
      SandboxError: { type: "object" },
    },
  },
};
function json(schema: object) {
  return { content: { "application/json": { schema } } };
}
function error(name: string) {
  return json({ $ref: `#/components/schemas/${name}` });
}
function inPath(name: string) {
  return { name, in: "path" as const, required: true, schema: { type: "string" } };
}

const schema = buildSchema(`
  scalar JSON
  input Settings { maxCostUsd: Float envVars: JSON }
  input Strict { onlyThis: Int! }
  input ThingInput { name: String settings: Settings strict: Strict }
  type Thing { id: ID! note: String goneAt: String echo: JSON }
  type Payload { thing: Thing! replayed: Boolean! }
  type Query { thing(id: ID!): Thing things(first: Int, after: String): JSON }
  type Mutation { createThing(input: ThingInput!, idempotencyKey: String): Payload deleteThing(id: ID!): Boolean }
`);
const documents = new Map<string, DocumentNode>(
  Object.entries({
    listThings: "query ($first: Int, $after: String) { reply: things(first: $first, after: $after) }",
    createThing:
      "mutation ($input: ThingInput!, $idempotencyKey: String) { reply: createThing(input: $input, idempotencyKey: $idempotencyKey) { replayed thing { id note gone_at: goneAt } } }",
    getThing: "query ($id: ID!) { reply: thing(id: $id) { id note gone_at: goneAt } }",
    deleteThing: "mutation ($id: ID!) { reply: deleteThing(id: $id) }",
    writeThing: "query ($id: ID!) { reply: thing(id: $id) { id } }",
  }).map(([name, text]) => [name, parse(text)]),
);
const table: Table = {
  listThings: {
    kind: "graph",
    take: ({ query }) => ({ first: query.limit, after: query.after }),
    give: (page) => ({ page }),
  },
  createThing: { kind: "graph", give: (reply) => reply.thing, refuseRepeats: ["/strict"] },
  getThing: { kind: "graph" },
  deleteThing: { kind: "graph" },
  readThing: {
    kind: "bytes",
    serve: async ({ reply, headOnly }) =>
      reply.header("Content-Length", "3").send(headOnly ? undefined : Readable.from([Buffer.from("abc")])),
  },
  writeThing: {
    kind: "bytes",
    document: true,
    serve: async ({ caller, content, ports, answerWith }) =>
      answerWith({ id: await ports.uploadAsset({ ...caller, name: "x", content }) }),
  },
};
const NOT_HERE = refusals({ not_here: [501, "Not in this release.", "Use something else."] });
const extensions: Extension[] = [
  { methods: ["get"], path: "/v1/extra", refuse: NOT_HERE.not_here },
  { methods: ["post"], path: "/v1/open", open: true, refuse: NOT_HERE.not_here },
];
const BUSY = refusals({ thing_busy: [503, "Busy.", "Wait."], thing_odd: [409, "Odd.", "Make it even."] });

const actor: Actor = { tenantId: "t", keyId: "key_1", memberId: null, email: "", name: "", role: "team", scopes: [] };

interface Face {
  app: FastifyInstance;
  /** Variables of the documents that ran. */
  ran: Record<string, unknown>[];
  uploaded: Buffer[];
}

const open: FastifyInstance[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((app) => app.close()));
});

async function face(
  resolvers: Record<string, unknown> = {},
  onSignal: (signal: AbortSignal) => void = () => {},
): Promise<Face> {
  const ran: Record<string, unknown>[] = [];
  const uploaded: Buffer[] = [];
  const ports: RestPorts = {
    authenticate: async (header) => (header === "Bearer good" ? actor : null),
    execute: async ({ document, variables, signal }) => {
      onSignal(signal);
      ran.push(variables as Record<string, unknown>);
      return JSON.parse(
        JSON.stringify(await execute({ schema, document, rootValue: resolvers, variableValues: variables })),
      ) as never;
    },
    bytes: {
      uploadAsset: async ({ content }) => {
        for await (const chunk of content) uploaded.push(chunk as Buffer);
        return "thing_1";
      },
      openOutput: () => Promise.reject(new Error("not used")),
      openLog: () => Promise.reject(new Error("not used")),
    },
  };
  const app = Fastify({ ...REST_SERVER_OPTIONS, forceCloseConnections: true });
  open.push(app);
  await app.register(restCompat, {
    contract: contractOf(contract),
    documents,
    schema,
    table,
    extensions,
    ports,
    helpUrl: (code: string) => `https://nodus.test/help#${code}`,
  });
  return { app, ran, uploaded };
}

const authorization = "Bearer good";
const create = (payload: unknown, headers: Record<string, string> = {}) => ({
  method: "POST" as const,
  url: "/v1/things",
  headers: { authorization, "idempotency-key": "k1", "content-type": "application/json", ...headers },
  payload: typeof payload === "string" || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload),
});
const made = { createThing: () => ({ thing: { id: "thing_1", note: null, goneAt: null }, replayed: false }) };

describe("what a row takes", () => {
  it("recases members of input types and leaves a customer's own map keys alone", async () => {
    const { app, ran } = await face(made);
    const answer = await app.inject(
      create({ name: "n", settings: { max_cost_usd: 1.5, env_vars: { some_key: 1, aB: { c_d: null } } } }),
    );
    expect(answer.statusCode).toBe(202);
    expect(ran).toEqual([
      {
        input: { name: "n", settings: { maxCostUsd: 1.5, envVars: { some_key: 1, aB: { c_d: null } } } },
        idempotencyKey: "k1",
      },
    ]);
  });

  it("keeps null and absent apart", async () => {
    const { app, ran } = await face(made);
    await app.inject(create({ settings: null }));
    await app.inject(create({}));
    expect(ran.map((v) => v.input)).toEqual([{ settings: null }, {}]);
  });

  it("ignores unknown members of open bodies and refuses them in closed ones by pointer", async () => {
    const { app, ran } = await face(made);
    expect((await app.inject(create({ name: "n", unheard_of: 1 }))).statusCode).toBe(202);
    const refused = await app.inject(create({ strict: { only_this: 1, "a/b": 2 } }));
    expect(refused.statusCode).toBe(400);
    expect(refused.json()).toMatchObject({ error: "unknown_field", field: "/strict/a~1b" });
    expect(ran).toEqual([{ input: { name: "n" }, idempotencyKey: "k1" }]);
  });

  it.each([
    [{ name: 5 }, "/name"],
    [{ name: null }, "/name"],
    [{ settings: { max_cost_usd: "1" } }, "/settings/max_cost_usd"],
    [{ strict: {} }, "/strict/only_this"],
    [{ strict: { only_this: 3_000_000_000 } }, "/strict/only_this"],
    [{ name: "nul\0" }, "/name"],
    ['{"name":"half \\ud800"}', "/name"],
    ['{"settings":{"max_cost_usd":1e999}}', "/settings/max_cost_usd"],
  ])("refuses %j and names %s", async (body, field) => {
    const { app, ran } = await face(made);
    const answer = await app.inject(create(body));
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toMatchObject({ error: "invalid_request", field });
    expect(ran).toEqual([]);
  });

  it("refuses repeated members only where the row says so", async () => {
    const { app } = await face(made);
    expect((await app.inject(create('{"name":"a","name":"b"}'))).statusCode).toBe(202);
    const refused = await app.inject(create('{"strict":{"only_this":1,"only_this":2}}'));
    expect(refused.json()).toMatchObject({ error: "duplicate_field", field: "/strict/only_this" });
  });

  it.each([["{"], ["[]"], ["null"], [""], [Buffer.from([0x7b, 0xff, 0x7d])]])("refuses %j as a body", async (body) => {
    const { app } = await face(made);
    const answer = await app.inject(create(body));
    expect(answer.statusCode).toBe(400);
    expect(answer.json().error).toBe("invalid_json");
  });

  it("refuses another media type and a body past the limit", async () => {
    const { app } = await face(made);
    expect((await app.inject(create({}, { "content-type": "text/plain" }))).statusCode).toBe(415);
    expect((await app.inject(create({}, { "content-type": "application/json; charset=utf-8" }))).statusCode).toBe(202);
    const large = await app.inject(create(`{"name":"${"x".repeat(LIMITS.jsonBodyBytes)}"}`));
    expect(large.statusCode).toBe(413);
    expect(large.json()).toMatchObject({ error: "body_too_large", limit_bytes: LIMITS.jsonBodyBytes });
  });

  it("wants an idempotency key where the contract does, before it looks at the body", async () => {
    const { app } = await face(made);
    const { "idempotency-key": _, ...bare } = create({}).headers;
    expect((await app.inject({ ...create("{"), headers: bare })).json().error).toBe("missing_idempotency_key");
    for (const key of ["", "with space", "é", "x".repeat(257)]) {
      const answer = await app.inject(create({}, { "idempotency-key": key }));
      expect(answer.statusCode).toBe(400);
      expect(answer.json().error).toBe(key === "" ? "missing_idempotency_key" : "invalid_idempotency_key");
    }
    expect((await app.inject(create({}, { "idempotency-key": "x".repeat(256) }))).statusCode).toBe(202);
  });

  it("coerces the query, fills in defaults and names what does not fit", async () => {
    const { app, ran } = await face({ things: () => ({}) });
    const get = (query: string) => app.inject({ url: `/v1/things${query}`, headers: { authorization } });
    await get("?limit=7&after=ab&unknown=1");
    await get("?limit=");
    expect(ran).toEqual([{ first: 7, after: "ab" }, { first: 5 }]);
    for (const query of [
      "?limit=0",
      "?limit=11",
      "?limit=x",
      "?limit=1.5",
      "?limit=9e9",
      "?limit=99999999999999999999",
      "?limit=1&limit=2",
    ])
      expect((await get(query)).json()).toMatchObject({ error: "invalid_limit", field: "/limit" });
    expect((await get("?after=abcde")).json()).toMatchObject({ error: "invalid_cursor", field: "/after" });
    expect((await get("?after=%00")).json()).toMatchObject({ error: "invalid_cursor" });
    expect(ran).toHaveLength(2);
  });
});

describe("what a row gives", () => {
  it("drops nulls that the contract does not allow and keeps those that it does", async () => {
    const { app } = await face({ thing: () => ({ id: "thing_1", note: null, goneAt: null }) });
    const answer = await app.inject({ url: "/v1/things/thing_1", headers: { authorization } });
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual({ id: "thing_1", gone_at: null });
    expect(answer.headers).toMatchObject({ "cache-control": "no-store", "x-request-id": expect.any(String) });
  });

  it("says that an answer is a replay", async () => {
    const { app } = await face({ createThing: () => ({ thing: { id: "thing_1" }, replayed: true }) });
    expect((await app.inject(create({}))).headers["idempotent-replayed"]).toBe("true");
    const first = await face(made);
    expect((await first.app.inject(create({}))).headers["idempotent-replayed"]).toBeUndefined();
  });

  it("answers 204 without a body where the contract documents none", async () => {
    const { app } = await face({ deleteThing: () => true });
    const answer = await app.inject({ method: "DELETE", url: "/v1/things/thing_1", headers: { authorization } });
    expect([answer.statusCode, answer.body]).toEqual([204, ""]);
  });

  it("answers 404 in the operation's envelope when the graph has nothing", async () => {
    const { app } = await face({ thing: () => null });
    const answer = await app.inject({ url: "/v1/things/nope", headers: { authorization } });
    expect(answer.statusCode).toBe(404);
    expect(answer.json()).toEqual({
      code: "not_found",
      message: COMMON.not_found.message,
      fix: COMMON.not_found.fix,
      url: "https://nodus.test/help#not_found",
    });
    expect((await app.inject({ url: "/v1/things/%00", headers: { authorization } })).statusCode).toBe(404);
  });

  it("hands on a refusal of the graph with its particulars and its Retry-After", async () => {
    const refuse = (kind: { code: string; status: number; message: string; fix: string }, more: object) => () => {
      throw new GraphQLError(kind.message, {
        extensions: { code: kind.code, status: kind.status, fix: kind.fix, ...more },
      });
    };
    const odd = await face({ createThing: refuse(BUSY.thing_odd, { field: "/name", detail: { limit_usd: 3 } }) });
    expect((await odd.app.inject(create({}))).json()).toEqual({
      error: "thing_odd",
      message: "Odd.",
      fix: "Make it even.",
      field: "/name",
      limit_usd: 3,
    });
    const busy = await face({ createThing: refuse(BUSY.thing_busy, { retryAfterSeconds: 7 }) });
    const answer = await busy.app.inject(create({}));
    expect([answer.statusCode, answer.headers["retry-after"]]).toEqual([503, "7"]);
  });

  it("masks a fault and keeps its request id", async () => {
    const { app } = await face({
      thing: () => {
        throw new Error("password=hunter2");
      },
    });
    const answer = await app.inject({ url: "/v1/things/thing_1", headers: { authorization } });
    expect(answer.statusCode).toBe(500);
    expect(answer.json().code).toBe("internal_error");
    expect(answer.body).not.toContain("hunter2");
  });
});

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
    const contractOnly = { contract: contractOf(contract) } as RestOptions;
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
