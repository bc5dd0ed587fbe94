import { describe, expect, it } from "vitest";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { authorization, create, face, made } from "./small-face.ts";

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
