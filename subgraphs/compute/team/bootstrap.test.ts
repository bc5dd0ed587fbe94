import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { revokeApiKey } from "../api-key/api-key.commands.ts";
import { ApiKey, ApiKeyAudit } from "../api-key/api-key.entity.ts";
import { resolveApiKey } from "../api-key/resolve-api-key.ts";
import { Member } from "../member/member.entity.ts";
import { bootstrap } from "./bootstrap.ts";
import { Team } from "./team.entity.ts";

let test1: TestDatabase;
let test2: TestDatabase;
const entities = [Team, Member, ApiKey, ApiKeyAudit];
const now = new Date("2026-03-01T12:00:00Z");

beforeAll(async () => {
  [test1, test2] = await Promise.all([testDatabase(entities), testDatabase(entities)]);
});
afterAll(() => Promise.all([test1?.close(), test2?.close()]));

test("processes that start at once make one team, one administrator and one key", async () => {
  const all = await Promise.all(Array.from({ length: 6 }, () => bootstrap(test1.db, { now })));
  expect(new Set(all.map((b) => b.team.id)).size).toBe(1);
  expect(all.filter((b) => b.created)).toHaveLength(1);
  const keys = all.flatMap((b) => (b.key === null ? [] : [b.key]));
  expect(keys).toHaveLength(1);
  expect(keys[0]).toMatch(/^nk_[A-Za-z0-9_-]{43}$/);
  const actor = await resolveApiKey(test1.db, keys[0]!, now);
  expect(actor).toMatchObject({ tenantId: all[0]!.team.id, role: "admin", email: "admin@localhost" });
  expect(actor!.scopes).toContain("admin");
});

test("a key that the operator chose is made once, also by a later start, and stays revoked", async () => {
  const chosen = "nk_chosen_by_the_operator";
  const first = await bootstrap(test2.db, { key: chosen, now });
  expect(first).toMatchObject({ created: true, key: chosen });
  expect(await bootstrap(test2.db, { key: chosen, now })).toMatchObject({ created: false, key: null });
  expect((await bootstrap(test2.db, { now })).key).toBeNull();
  const second = await bootstrap(test2.db, { key: "nk_another_chosen_one", now });
  expect(second).toMatchObject({ created: false, key: "nk_another_chosen_one" });
  const actor = (await resolveApiKey(test2.db, chosen, now))!;
  await revokeApiKey(test2.db, actor, actor.keyId, now);
  await bootstrap(test2.db, { key: chosen, now });
  expect(await resolveApiKey(test2.db, chosen, now)).toBeNull();
  expect((await resolveApiKey(test2.db, "nk_another_chosen_one", now))?.tenantId).toBe(first.team.id);
});

test("a chosen key that could be guessed or cannot be sent is refused before anything is made", async () => {
  await expect(bootstrap(test2.db, { key: "short", now })).rejects.toThrow(/16 to 256/);
  await expect(bootstrap(test2.db, { key: "nk_with a blank in the middle", now })).rejects.toThrow(/16 to 256/);
});
