import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTlsPostgres, type TlsPostgres } from "../support/tls-postgres.ts";
import { type RestFace, restFace } from "./rest-face.ts";

let face: RestFace;
let postgres: TlsPostgres;
beforeAll(async () => {
  postgres = await startTlsPostgres();
  face = await restFace(undefined, { allowPrivateHosts: ["localhost"] });
  for (const as of ["member", "stranger"] as const)
    await face.ask("putSecret", { body: { name: "SHOP_DB", value: postgres.secret() }, as });
}, 60_000);
afterAll(async () => {
  await Promise.all([face?.close(), postgres?.close()]);
});

const create = (body: object = {}, as: "member" | "team" | "stranger" | null = "member") =>
  face.ask("createConnection", { body: { name: "shop", kind: "postgres", secret: "SHOP_DB", ...body }, as });

describe("connections", () => {
  it("are verified, read by id and by name, listed, verified again and deleted", async () => {
    const made = await create({ region: "eu-1", scope: "readwrite" });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      ...{ name: "shop", kind: "postgres", secret_version: 1, scope: "readwrite", region: "eu-1" },
      ...{ egress_hosts: ["localhost"], live_mode: false, created_by: "mem_one" },
    });
    expect(made.body.id).toMatch(/^conn_/);
    expect(made.body).not.toHaveProperty("branch");
    for (const id of [made.body.id, "shop"])
      expect((await face.ask("getConnection", { path: { id } })).body).toEqual(made.body);
    expect((await face.ask("listConnections")).body).toEqual({ connections: [made.body] });
    await face.compute.clock.advance(1_000);
    const verified = await face.ask("verifyConnection", { path: { id: "shop" } });
    expect([verified.status, verified.body]).toEqual([200, { ...made.body, verified_at: "2026-03-01T00:00:01.000Z" }]);
    expect((await face.ask("verifyConnection", { path: { id: "shop" } })).body).toEqual(verified.body);
    expect((await face.ask("deleteConnection", { path: { id: "shop" } })).status).toBe(204);
    expect((await face.ask("deleteConnection", { path: { id: "shop" } })).status).toBe(404);
    expect((await face.ask("listConnections")).body).toEqual({ connections: [] });
  });

  it("want credentials", async () => {
    expect((await create({}, null)).status).toBe(401);
    for (const operation of ["getConnection", "deleteConnection", "verifyConnection"])
      expect((await face.ask(operation, { path: { id: "shop" }, as: null })).status).toBe(401);
  });

  it("belong to their team", async () => {
    const { body } = await create({ name: "mine" });
    for (const operation of ["getConnection", "deleteConnection", "verifyConnection"])
      for (const id of [body.id, "mine"])
        expect((await face.ask(operation, { path: { id }, as: "stranger" })).status).toBe(404);
    expect((await face.ask("listConnections", { as: "stranger" })).body.connections).toEqual([]);
    expect((await create({ name: "mine" }, "stranger")).status).toBe(201);
    expect((await face.ask("getConnection", { path: { id: body.id } })).status).toBe(200);
  });

  it.each([
    [{ name: "1a" }, 400, "invalid_connection_name", "/name"],
    [{ name: "github" }, 400, "invalid_connection_name", "/name"],
    [{ name: 7 }, 400, "invalid_request", "/name"],
    [{ kind: "mysql" }, 400, "invalid_request", "/kind"],
    [{ scope: "all" }, 400, "invalid_request", "/scope"],
    [{ secret: "NONE" }, 400, "secret_not_found", "/secret"],
    [{ secret: undefined }, 400, "invalid_request", "/secret"],
    [{ url: "postgres://x" }, 400, "unknown_field", "/url"],
    [{ branch: "main" }, 400, "invalid_connection", "/branch"],
    [{ kind: "supabase" }, 400, "secret_shape_invalid", "/secret"],
  ])("refuse %j", async (body, status, code, field) => {
    const answer = await create({ name: "refused", ...body });
    expect([answer.status, answer.body.error, answer.body.field]).toEqual([status, code, field]);
    expect((await face.ask("getConnection", { path: { id: "refused" } })).status).toBe(404);
  });

  it("say why they could not be verified, and never with what", async () => {
    await face.ask("putSecret", { body: { name: "WRONG", value: postgres.secret({ password: "not-the-password" }) } });
    const answer = await create({ name: "refused", secret: "WRONG" });
    expect([answer.status, answer.body.error, answer.body.reason]).toEqual([
      422,
      "verification_failed",
      "credentials_rejected",
    ]);
    expect(answer.text).not.toContain("not-the-password");
  });

  it("need an administrator's own key for live mode", async () => {
    await face.ask("putSecret", { body: { name: "WB", value: "0123456789abcdef" } });
    const live = { name: "wb", kind: "wandb", secret: "WB", entity: "e", project: "p", live_mode: true };
    const answer = await create(live, "team");
    expect([answer.status, answer.body.error, answer.body.field]).toEqual([403, "admin_required", "/live_mode"]);
  });

  it("are inactive once their secret has another version, and their name stays taken", async () => {
    await face.ask("putSecret", { body: { name: "TURNS", value: postgres.secret() } });
    await create({ name: "turns", secret: "TURNS" });
    await face.ask("putSecret", { body: { name: "TURNS", value: postgres.secret() } });
    const verified = await face.ask("verifyConnection", { path: { id: "turns" } });
    expect([verified.status, verified.body.error]).toEqual([409, "connection_inactive"]);
    const again = await create({ name: "turns", secret: "TURNS" });
    expect([again.status, again.body.error]).toEqual([409, "connection_exists"]);
    expect((await create({ name: "turned", secret: "TURNS" })).body.secret_version).toBe(2);
  });
});
