import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { graphql } from "graphql";
import { afterAll, beforeAll, expect, test } from "vitest";
import { databaseOf } from "../../infra/graphql/context.ts";
import { requestLoaders } from "../../infra/graphql/loaders.ts";
import { type Actor, SCOPES, type Scope } from "../../infra/kernel/actor.ts";
import { FakeClock, systemClock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { openDiskStore } from "../../infra/objects/disk-store.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import { teamKey } from "../../tests/support/actors.ts";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { ASSET_LIMITS } from "./asset/asset-limits.ts";
import { beginUpload, claimObject, commitUpload } from "./asset/asset-upload.commands.ts";
import { dataEntities } from "./entities.ts";
import { buildDataSubgraph } from "./index.ts";
import { SecretBox } from "./secret/secret-box.ts";

let database: TestDatabase;
const clock = new FakeClock("2026-03-01T12:00:00Z");
const secretBox = new SecretBox({ id: "mk-1", key: randomBytes(32) });
const { schema } = buildDataSubgraph();

let folder: string;
let assetObjects: ObjectStore;

beforeAll(async () => {
  database = await testDatabase(dataEntities);
  folder = mkdtempSync(path.join(tmpdir(), "nodus-data-graph-"));
  assetObjects = await openDiskStore(folder);
});
afterAll(async () => {
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function ask<T = Record<string, unknown>>(
  actor: Actor | null,
  source: string,
  variableValues: Record<string, unknown> = {},
) {
  const contextValue = {
    actor,
    requestId: "req_1",
    db: databaseOf(database.db, actor),
    clock,
    loader: requestLoaders(),
    data: { secretBox, assetLimits: ASSET_LIMITS, assetObjects },
  };
  const { data, errors } = await graphql({ schema, source, variableValues, contextValue });
  return { data: data as T, codes: errors?.map((e) => e.extensions.code), errors };
}

/** An asset whose bytes nobody reads here. */
async function asset(tenantId: string, name: string) {
  const now = clock.now();
  const upload = await beginUpload(database.db, tenantId, ASSET_LIMITS, now);
  const object = { sha256: randomBytes(32).toString("hex"), bytes: 10 };
  await claimObject({ db: database.db, clock: systemClock }, upload, object);
  const stored = { ...object, name, importedBytes: 10, format: "file" as const };
  const made = await commitUpload(database.db, upload, stored, ASSET_LIMITS, now);
  await clock.advance(1);
  return made;
}

test("secrets are written, listed in order of name and retired, and no answer ever holds a value", async () => {
  const actor = teamKey("team_secrets");
  const put =
    "mutation ($input: PutSecretInput!) { putSecret(input: $input) { secret { id name version createdAt retiredAt } } }";
  const value = "not to be seen again";
  const answers: unknown[] = [];
  for (const name of ["B", "_a", "A"]) answers.push(await ask(actor, put, { input: { name, value } }));
  const list =
    "query ($first: Int, $after: String) { secrets(first: $first, after: $after) { nodes { name version } pageInfo { hasNextPage endCursor } } }";
  const all = await ask<{ secrets: { nodes: { name: string }[] } }>(actor, list, { first: LIMITS.secretsPerTeam });
  expect(all.data.secrets.nodes.map((s) => s.name)).toEqual(["A", "B", "_a"]);
  const one = await ask<{ secrets: { pageInfo: { endCursor: string } } }>(actor, list, { first: 1 });
  expect(one.data).toMatchObject({ secrets: { nodes: [{ name: "A" }], pageInfo: { hasNextPage: true } } });
  const rest = await ask(actor, list, { after: one.data.secrets.pageInfo.endCursor });
  expect(rest.data).toMatchObject({
    secrets: { nodes: [{ name: "B" }, { name: "_a" }], pageInfo: { hasNextPage: false } },
  });
  const retire = "mutation ($input: RetireSecretInput!) { retireSecret(input: $input) { secret { name retiredAt } } }";
  answers.push(await ask(actor, retire, { input: { name: "B" } }));
  expect((await ask(actor, retire, { input: { name: "B" } })).codes).toEqual(["secret_not_found"]);
  const refused = await ask(actor, put, { input: { name: "NODUS_X", value } });
  expect(refused.codes).toEqual(["reserved_name"]);
  expect(JSON.stringify([answers, refused, all])).not.toContain(value);
});

test("assets are listed newest first, read, counted and deleted", async () => {
  const actor = teamKey("team_assets");
  const [old, young] = [await asset(actor.tenantId, "old"), await asset(actor.tenantId, "young")];
  const list = `{
    assets(first: 500) { nodes { name state format storedBytes importedBytes revision error deletedAt } pageInfo { hasNextPage } }
    assetStorage { maxImportBytes storageQuotaBytes stagedBytes storedBytes billingEnabled }
  }`;
  expect((await ask(actor, list)).data).toEqual({
    assets: {
      nodes: ["young", "old"].map((name) => ({
        name,
        state: "ready",
        format: "file",
        storedBytes: 10,
        importedBytes: 10,
        revision: null,
        error: null,
        deletedAt: null,
      })),
      pageInfo: { hasNextPage: false },
    },
    assetStorage: {
      maxImportBytes: LIMITS.assetBytes,
      storageQuotaBytes: LIMITS.assetQuotaBytes,
      stagedBytes: 0,
      storedBytes: 20,
      billingEnabled: false,
    },
  });
  const remove =
    "mutation ($input: DeleteAssetInput!) { deleteAsset(input: $input) { asset { id state storedBytes } } }";
  expect((await ask(actor, remove, { input: { id: old.id } })).data).toEqual({
    deleteAsset: { asset: { id: old.id, state: "deleted", storedBytes: 0 } },
  });
  expect((await ask(actor, remove, { input: { id: old.id } })).codes).toEqual(["not_found"]);
  const read = "query ($id: ID!) { asset(id: $id) { name state } }";
  expect((await ask(actor, read, { id: old.id })).data).toEqual({ asset: { name: "old", state: "deleted" } });
  expect((await ask(teamKey("team_foreign"), read, { id: young.id })).codes).toEqual(["not_found"]);
  for (const id of ["asset_", "asset_\0", "wl_1", "../x"])
    expect((await ask(actor, read, { id })).codes).toEqual(["not_found"]);
});

test("entities of other teams are null to a reference, and both kinds answer in one request", async () => {
  const mine = await asset("team_refs", "mine");
  const theirs = await asset("team_theirs", "theirs");
  const source =
    "query ($of: [_Any!]!) { _entities(representations: $of) { ... on Asset { name } ... on Secret { name } } }";
  const of = [mine.id, theirs.id, "asset_0"].map((id) => ({ __typename: "Asset", id }));
  const { data } = await ask(teamKey("team_refs"), source, { of: [...of, { __typename: "Secret", id: "sec_0" }] });
  expect(data).toEqual({ _entities: [{ name: "mine" }, null, null, null] });
});

test.for<[string, string, Scope]>([
  ["secrets", "{ secrets { nodes { name } } }", "data:read"],
  ["assets", "{ assets { nodes { name } } }", "data:read"],
  ["storage", "{ assetStorage { storedBytes } }", "data:read"],
  ["a write", `mutation { putSecret(input: { name: "A", value: "v" }) { secret { id } } }`, "data:write"],
  ["a retirement", `mutation { retireSecret(input: { name: "A" }) { secret { id } } }`, "data:write"],
  ["an import", `mutation { importAsset(input: { kind: url, url: "https://a.example/x" }) { reused } }`, "data:write"],
  ["the account at GitHub", "{ githubAccount { login } }", "data:read"],
  ["a deletion", `mutation { deleteAsset(input: { id: "asset_1" }) { asset { id } } }`, "data:write"],
])("%s needs credentials and its scope", async ([, source, scope]) => {
  expect((await ask(null, source)).codes).toEqual(["unauthorized"]);
  const others = SCOPES.filter((s) => s !== scope);
  expect((await ask(teamKey("team_scopes", others), source)).codes).toEqual(["insufficient_scope"]);
});

test("the tables that the entities describe are the tables that are made", async () => {
  expect(await database.db.orm.schema.getUpdateSchemaSQL({ safe: true, wrap: false })).toBe("");
});
