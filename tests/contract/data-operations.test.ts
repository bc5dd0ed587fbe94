import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RestFace, restFace } from "./rest-face.ts";

let face: RestFace;
beforeAll(async () => {
  face = await restFace();
}, 60_000);
afterAll(() => face.close());

describe("the account", () => {
  it("tells whose key it is, a team's with an empty address", async () => {
    expect((await face.ask("identity")).body).toEqual({
      email: "one@example.com",
      tenant: "team_fixture",
      key_id: "key_member",
    });
    expect((await face.ask("identity", { as: "team" })).body.email).toBe("");
    const client = await face.app.inject({ url: "/v1/identity", headers: { authorization: "Bearer team" } });
    expect([client.statusCode, client.json()]).toEqual([
      200,
      { email: "", name: "One", tenant: "team_fixture", key_id: "key_team" },
    ]);
    expect((await face.ask("identity", { as: null })).status).toBe(401);
  });
});

describe("secrets", () => {
  it("are versioned, listed without values and retired", async () => {
    const first = await face.ask("putSecret", { body: { name: "TOKEN", value: "hunter2" } });
    expect([first.status, first.body.version]).toEqual([201, 1]);
    const second = await face.ask("putSecret", { body: { name: "TOKEN", value: "hunter3" } });
    expect([second.body.id, second.body.version]).toEqual([first.body.id, 2]);
    const list = await face.ask("listSecrets");
    expect(list.body.secrets).toEqual([second.body]);
    expect(list.text).not.toContain("hunter");
    expect((await face.ask("deleteSecret", { path: { name: "TOKEN" } })).status).toBe(204);
    expect((await face.ask("listSecrets")).body.secrets).toEqual([]);
  });

  it("belong to their team", async () => {
    await face.ask("putSecret", { body: { name: "MINE", value: "abcd" } });
    expect((await face.ask("listSecrets", { as: "stranger" })).body.secrets).toEqual([]);
    const theirs = await face.ask("deleteSecret", { path: { name: "MINE" }, as: "stranger" });
    expect([theirs.status, theirs.body.code]).toEqual([404, "secret_not_found"]);
    expect((await face.ask("listSecrets")).body.secrets).toHaveLength(1);
  });

  it.each([
    [{ name: "1A", value: "x" }, "/name"],
    [{ name: "NODUS_X", value: "x" }, "/name"],
    [{ name: "A", value: "" }, "/value"],
    [{ name: "A", value: "x".repeat(4097) }, "/value"],
    [{ name: "A", value: "ä".repeat(2049) }, "/value"],
    [{ name: "A", value: "x\u0000" }, "/value"],
    [{ name: "A" }, "/value"],
    [{ name: "A", value: "x", more: 1 }, "/more"],
  ])("refuse %j", async (body, field) => {
    const answer = await face.ask("putSecret", { body });
    expect([answer.status, answer.body.field]).toEqual([400, field]);
    expect(answer.body.url).toBe(`https://nodus.test/help/errors#${answer.body.code}`);
  });
});

describe("assets", () => {
  const upload = (bytes: Buffer, as: "member" | "stranger" = "member") =>
    face.ask("uploadAsset", {
      body: bytes,
      query: { name: "data.bin" },
      headers: { "content-type": "application/octet-stream" },
      as,
    });

  it("are uploaded, read, listed and deleted", async () => {
    const bytes = Buffer.from("some data");
    const made = await upload(bytes);
    expect([made.status, made.body.state, made.body.name]).toEqual([201, "ready", "data.bin"]);
    expect((await face.ask("getAsset", { path: { id: made.body.id } })).body).toEqual(made.body);
    const list = (await face.ask("listAssets")).body;
    expect(list.assets).toEqual([made.body]);
    expect(list).toMatchObject({ billing_enabled: false, stored_bytes: made.body.stored_bytes });
    expect(made.body.sha256).toMatch(/^[0-9a-f]{64}$/);
    expect((await face.ask("deleteAsset", { path: { id: made.body.id } })).status).toBe(204);
    expect((await face.ask("getAsset", { path: { id: made.body.id } })).body).toMatchObject({
      state: "deleted",
      deleted_at: expect.any(String),
    });
    expect((await face.ask("listAssets")).body.assets).toEqual([]);
    expect((await face.ask("deleteAsset", { path: { id: made.body.id } })).status).toBe(404);
  });

  it("belong to their team, and bad archives leave nothing", async () => {
    const { body } = await upload(Buffer.from(createHash("sha256").update("x").digest("hex")));
    for (const operationId of ["getAsset", "deleteAsset"])
      expect((await face.ask(operationId, { path: { id: body.id }, as: "stranger" })).status).toBe(404);
    expect((await face.ask("listAssets", { as: "stranger" })).body.assets).toEqual([]);
    expect((await face.ask("getAsset", { path: { id: "asset_nope" } })).status).toBe(404);
    const broken = await face.ask("uploadAsset", { body: Buffer.from("PK no zip"), query: { name: "a.zip" } });
    expect(broken.status).toBe(400);
    expect((await face.ask("listAssets")).body.assets).toEqual([body]);
  });
});

describe("workspaces", () => {
  it("are made once by name and size", async () => {
    const made = await face.ask("createWorkspace", { body: { name: "work", size_gb: 1.5 } });
    expect([made.status, made.body.name, made.body.size_gb, made.body.holder_id, made.body.saved_at]).toEqual([
      201,
      "work",
      1.5,
      null,
      null,
    ]);
    expect(await face.ask("createWorkspace", { body: { name: "work", size_gb: 1.5 } })).toMatchObject({
      status: 201,
      body: made.body,
    });
    const other = await face.ask("createWorkspace", { body: { name: "work", size_gb: 2 } });
    expect([other.status, other.body.code]).toEqual([409, "workspace_exists"]);
    expect((await face.ask("listWorkspaces")).body.workspaces).toEqual([made.body]);
    expect((await face.ask("listWorkspaces", { as: "stranger" })).body.workspaces).toEqual([]);
  });

  it.each([
    [{ name: "", size_gb: 1 }, "/name"],
    [{ name: "a b", size_gb: 1 }, "/name"],
    [{ name: "a", size_gb: 0 }, "/size_gb"],
    [{ name: "a", size_gb: "1" }, "/size_gb"],
    [{ name: "a", size_gb: 1e300 }, "/size_gb"],
    [{ name: "a", size_gb: 1, zone: "x" }, "/zone"],
  ])("refuse %j", async (body, field) => {
    const answer = await face.ask("createWorkspace", { body });
    expect([answer.status, answer.body.field]).toEqual([400, field]);
  });
});

describe("pools and recipes", () => {
  it("are made, read and listed by their team", async () => {
    const made = await face.ask("createPool", { body: { name: "rack" } });
    expect([made.status, made.body.name, made.body.wait_alpha]).toEqual([201, "rack", 0.1]);
    expect((await face.ask("getPool", { path: { id: made.body.id } })).body).toEqual(made.body);
    expect((await face.ask("listPools")).body.pools).toEqual([made.body]);
    expect((await face.ask("listPools", { as: "stranger" })).body.pools).toEqual([]);
    for (const ask of [{ path: { id: made.body.id }, as: "stranger" as const }, { path: { id: "pool_nope" } }]) {
      const answer = await face.ask("getPool", ask);
      expect([answer.status, answer.body.error]).toEqual([404, "not_found"]);
    }
  });

  it.each([
    [{ name: "" }, "/name"],
    [{ name: "x".repeat(201) }, "/name"],
    [{}, "/name"],
    [{ name: "a", kind: "b" }, "/kind"],
  ])("refuse %j", async (body, field) => {
    const answer = await face.ask("createPool", { body });
    expect([answer.status, answer.body.field]).toEqual([400, field]);
  });

  it("say of each recipe whether it can run, and why not", async () => {
    const { recipes } = (await face.ask("listRLRecipes")).body;
    expect(recipes.length).toBeGreaterThan(0);
    for (const recipe of recipes) expect(recipe.available).toBe(recipe.unavailable_reason === undefined);
  });
});
