import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Actor, Scope } from "../../../infra/kernel/actor.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { addMember } from "../member/member.commands.ts";
import { Member } from "../member/member.entity.ts";
import { bootstrap } from "../team/bootstrap.ts";
import { createTeam } from "../team/team.commands.ts";
import { Team } from "../team/team.entity.ts";
import { type MintedApiKey, mintApiKey, type NewApiKey, revokeApiKey } from "./api-key.commands.ts";
import { ApiKey, ApiKeyAudit } from "./api-key.entity.ts";
import { resolveApiKey } from "./resolve-api-key.ts";

let database: TestDatabase;
let admin: Actor;
const now = new Date("2026-03-01T12:00:00Z");
const later = (ms: number) => new Date(now.getTime() + ms);

beforeAll(async () => {
  database = await testDatabase([Team, Member, ApiKey, ApiKeyAudit]);
  const { key } = await bootstrap(database.db, { now });
  admin = (await resolveApiKey(database.db, key!, now))!;
});
afterAll(() => database?.close());

const topics: string[] = [];
beforeEach(() => {
  topics.length = 0;
  database.db.announceTo((topic) => topics.push(topic));
});

const WANTED: NewApiKey = { name: "ci", memberId: null, scopes: ["workloads:read"], expiresAt: null };
const mint = (input: Partial<NewApiKey> = {}, actor = admin): Promise<MintedApiKey> =>
  mintApiKey(database.db, actor, { ...WANTED, ...input }, now);
const history = (keyId: string) => database.db.rows(ApiKeyAudit, "where t.key_id = $1 order by t.id", [keyId]);

test("a key of the team acts as the team, with its own scopes", async () => {
  const { apiKey, key } = await mint();
  expect(await resolveApiKey(database.db, key, now)).toEqual({
    tenantId: admin.tenantId,
    keyId: apiKey.id,
    memberId: null,
    email: "",
    name: "ci",
    role: "team",
    scopes: ["workloads:read"],
  });
  expect(apiKey.lastFour).toBe(key.slice(-4));
  const stored = JSON.stringify(await database.db.sql("select * from compute.api_key where id = $1", [apiKey.id]));
  expect(stored).not.toContain(key);
});

test("unknown, malformed, expired and revoked keys are nobody", async () => {
  const expiring = await mint({ expiresAt: later(1000) });
  expect(await resolveApiKey(database.db, expiring.key, later(999))).not.toBeNull();
  expect(await resolveApiKey(database.db, expiring.key, later(1000))).toBeNull();
  const revoked = await mint();
  await revokeApiKey(database.db, admin, revoked.apiKey.id, now);
  expect(await resolveApiKey(database.db, revoked.key, now)).toBeNull();
  for (const text of ["", "nk_", `nk_${"a".repeat(43)}`, "nk_' or 1=1 --", "x".repeat(5000), `${revoked.key}\n`])
    expect(await resolveApiKey(database.db, text, now)).toBeNull();
});

test("a revocation wakes the key's streams and the caches of keys, once", async () => {
  const { apiKey } = await mint();
  const first = await revokeApiKey(database.db, admin, apiKey.id, later(1));
  expect(topics).toEqual([`key:${apiKey.id}`, "keys"]);
  const second = await revokeApiKey(database.db, admin, apiKey.id, later(5000));
  expect(second.revokedAt).toEqual(first.revokedAt);
  expect(topics).toHaveLength(2);
  expect((await history(apiKey.id)).map((a) => a.action)).toEqual(["created", "revoked"]);
});

test("the last use is noted at most once a minute", async () => {
  const { apiKey, key } = await mint();
  const lastUse = async () => (await database.db.row(ApiKey, "where t.id = $1", [apiKey.id]))!.lastUsedAt?.getTime();
  await resolveApiKey(database.db, key, later(1));
  await resolveApiKey(database.db, key, later(60_000));
  expect(await lastUse()).toBe(later(1).getTime());
  await resolveApiKey(database.db, key, later(60_001));
  expect(await lastUse()).toBe(later(60_001).getTime());
});

test("a last use that lies ahead, because the clock was set back, is put right", async () => {
  const { apiKey, key } = await mint();
  const lastUse = async () => (await database.db.row(ApiKey, "where t.id = $1", [apiKey.id]))!.lastUsedAt?.getTime();
  await resolveApiKey(database.db, key, later(3_600_000));
  await resolveApiKey(database.db, key, later(1));
  expect(await lastUse()).toBe(later(1).getTime());
  // Clocks of two processes differ a little; neither writes at every request because of that.
  await resolveApiKey(database.db, key, now);
  expect(await lastUse()).toBe(later(1).getTime());
});

test("a request does not wait for another one that holds the key's row", async () => {
  const { apiKey, key } = await mint();
  await database.db.command(async (tx) => {
    await tx.sql("select 1 from compute.api_key where id = $1 for update", [apiKey.id]);
    expect((await resolveApiKey(database.db, key, now))?.keyId).toBe(apiKey.id);
  });
});

test("no key gives more than the one that makes it, and the attempt is in its history", async () => {
  const narrow: Actor = { ...admin, keyId: (await mint()).apiKey.id, scopes: ["admin", "data:read"] };
  await expect(mint({ scopes: ["data:read", "data:write"] }, narrow)).rejects.toMatchObject({
    kind: { code: "insufficient_scope" },
    detail: { field: "/scopes", extra: { required_scope: "data:write" } },
  });
  expect((await history(narrow.keyId)).at(-1)).toMatchObject({ action: "scope_refused", detail: "data:write" });
});

test("only an administrator's key may have the scope admin", async () => {
  const refused = { kind: { code: "invalid_scopes" } };
  await expect(mint({ scopes: ["admin"] })).rejects.toMatchObject(refused);
  const person = await addMember(database.db, admin, { email: "Ann@Example.com ", name: "Ann", role: "member" }, now);
  expect(person.email).toBe("ann@example.com");
  await expect(mint({ scopes: ["admin"], memberId: person.id })).rejects.toMatchObject(refused);
  const { key } = await mint({ scopes: ["data:read"], memberId: person.id });
  expect(await resolveApiKey(database.db, key, now)).toMatchObject({
    memberId: person.id,
    role: "member",
    name: "Ann",
  });
  expect((await mint({ scopes: ["admin"], memberId: admin.memberId })).apiKey.scopes).toEqual(["admin"]);
});

test.for<[string, Partial<NewApiKey>, string, string]>([
  ["no scope", { scopes: [] }, "invalid_scopes", "/scopes"],
  ["an unknown scope", { scopes: ["root" as Scope] }, "invalid_scopes", "/scopes"],
  ["a scope twice", { scopes: ["data:read", "data:read"] }, "invalid_scopes", "/scopes"],
  ["an expiry that is past", { expiresAt: now }, "invalid_expiry", "/expires_at"],
  ["an empty name", { name: " " }, "invalid_request", "/name"],
  ["a name of two lines", { name: "a\nb" }, "invalid_request", "/name"],
  ["an unknown member", { memberId: "mem_1" }, "member_not_found", "/member_id"],
])("a key with %s is refused and nothing is made", async ([, input, code, field]) => {
  const count = () => database.db.sql("select count(*) from compute.api_key");
  const before = await count();
  await expect(mint(input)).rejects.toMatchObject({ kind: { code }, detail: { field } });
  expect(await count()).toEqual(before);
});

test("keys and members of another team read as absent", async () => {
  const other = await createTeam(database.db, { name: "Other", admin: { email: "o@example.com", name: "O" } }, now);
  const stranger: Actor = { ...admin, tenantId: other.team.id, memberId: other.admin.id };
  await expect(revokeApiKey(database.db, admin, "key_\0", now)).rejects.toMatchObject({ kind: { code: "not_found" } });
  await expect(mint({ memberId: "mem_\0" })).rejects.toMatchObject({ kind: { code: "member_not_found" } });
  const { apiKey } = await mint();
  await expect(revokeApiKey(database.db, stranger, apiKey.id, now)).rejects.toMatchObject({
    kind: { code: "not_found" },
  });
  await expect(mint({ memberId: admin.memberId }, stranger)).rejects.toMatchObject({
    kind: { code: "member_not_found" },
  });
});

test("an address is taken once in a team, in any spelling of its case", async () => {
  await addMember(database.db, admin, { email: "twice@example.com", name: "A", role: "member" }, now);
  const again = addMember(database.db, admin, { email: "TWICE@example.com", name: "B", role: "member" }, now);
  await expect(again).rejects.toMatchObject({ kind: { code: "member_exists" }, detail: { field: "/email" } });
  for (const email of ["", "a", "a@", "a b@c", "a@b@c"])
    await expect(addMember(database.db, admin, { email, name: "B", role: "member" }, now)).rejects.toMatchObject({
      kind: { code: "invalid_email" },
    });
});
