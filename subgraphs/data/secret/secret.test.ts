import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { Refused } from "../../../infra/kernel/refusal.ts";
import { newTeams } from "../../../tests/support/actors.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { destroyRetiredSecrets } from "./destroy-retired-secrets.ts";
import { listSecrets, putSecret, retireSecret } from "./secret.commands.ts";
import { Secret, SecretPin, SecretVersion } from "./secret.entity.ts";
import { SecretBox } from "./secret-box.ts";
import { SecretPins } from "./secret-pins.ts";

let database: TestDatabase;
const key = { id: "mk-1", key: randomBytes(32) };
const box = new SecretBox(key);
const pins = new SecretPins(box);
const now = new Date("2026-03-01T12:00:00Z");
const days = (n: number) => new Date(now.getTime() + n * 86_400_000);

beforeAll(async () => {
  database = await testDatabase([Secret, SecretVersion, SecretPin]);
});
afterAll(() => database?.close());

const team = newTeams();
const put = (actor: Actor, name: string, value = "value", at = now) =>
  putSecret({ db: database.db, box }, actor, { name, value }, at);
const pin = (actor: Actor, names: string[], holderId: string) =>
  database.db.command((tx) =>
    pins.pin(tx, { tenantId: actor.tenantId, names, holderId, now, field: "/policy/secret_refs" }),
  );
const reveal = (actor: Actor, holderId: string) => pins.reveal(database.db, { tenantId: actor.tenantId, holderId });
const versions = (actor: Actor) =>
  database.db.rows(SecretVersion, "where t.tenant_id = $1 order by t.created_at, t.version", [actor.tenantId]);

test("writing a name again makes the next version of the same secret, and the same value is no exception", async () => {
  const actor = team();
  const first = await put(actor, "TOKEN", "same");
  const second = await put(actor, "TOKEN", "same", days(1));
  expect(first).toMatchObject({ name: "TOKEN", version: 1 });
  expect(second).toMatchObject({ id: first.id, version: 2, createdAt: days(1) });
  expect(await listSecrets(database.db, actor.tenantId, null, 10)).toMatchObject([{ id: first.id, version: 2 }]);
});

test("concurrent writers of one name get versions without gap or repeat", async () => {
  const actor = team();
  const made = await Promise.all(Array.from({ length: 12 }, (_, i) => put(actor, "TOKEN", `v${i}`)));
  expect(made.map((s) => s.version).sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, i) => i + 1));
  expect(new Set(made.map((s) => s.id)).size).toBe(1);
});

test("a name that is used again after retirement is a new secret at version 1", async () => {
  const actor = team();
  const first = await put(actor, "TOKEN");
  await put(actor, "TOKEN");
  await retireSecret(database.db, actor, "TOKEN", now);
  await expect(retireSecret(database.db, actor, "TOKEN", now)).rejects.toMatchObject({
    kind: { code: "secret_not_found", status: 404 },
  });
  expect(await listSecrets(database.db, actor.tenantId, null, 10)).toEqual([]);
  const again = await put(actor, "TOKEN");
  expect(again.version).toBe(1);
  expect(again.id).not.toBe(first.id);
});

test("neither the table nor what is answered holds the value", async () => {
  const actor = team();
  const value = "a value that would be seen";
  const answered = await put(actor, "TOKEN", value);
  expect(JSON.stringify(answered)).not.toContain(value);
  const rows = await database.db.sql<{ ciphertext: Buffer }>("select * from data.secret_version where tenant_id = $1", [
    actor.tenantId,
  ]);
  expect(rows[0]!.ciphertext.includes(value)).toBe(false);
});

test.for<[string, string, string, string, string]>([
  ["a name that starts with a digit", "1A", "v", "invalid_secret", "/name"],
  ["an empty name", "", "v", "invalid_secret", "/name"],
  ["a name of 129 characters", "A".repeat(129), "v", "invalid_secret", "/name"],
  ["a name with a line break at its end", "A\n", "v", "invalid_secret", "/name"],
  ["a name of the platform", "NODUS_TOKEN", "v", "reserved_name", "/name"],
  ["a look-alike of a name of the platform", "nodus_token", "v", "reserved_name", "/name"],
  ["a name of the metrics integration", "WANDB_API_KEY", "v", "reserved_name", "/name"],
  ["an empty value", "A", "", "invalid_secret", "/value"],
  ["a value with NUL", "A", "a\0b", "invalid_secret", "/value"],
  ["a value of 4097 bytes", "A", `${"é".repeat(2048)}x`, "invalid_secret", "/value"],
  ["a value that is no UTF-8", "A", "\ud800", "invalid_secret", "/value"],
])("%s is refused, and the refusal does not repeat the value", async ([, name, value, code, field]) => {
  const actor = team();
  const error = await put(actor, name, value).catch((e: Error) => e);
  expect(error).toMatchObject({ kind: { code, status: 400 }, detail: { field } });
  if (code === "invalid_secret") expect((error as Refused).fix).toContain(field.slice(1));
  if (value.length > 3) expect(JSON.stringify(error)).not.toContain(value);
  expect(await versions(actor)).toEqual([]);
});

test("any text of 1 to 4096 bytes without NUL comes back as it was, emoji and line breaks included", async () => {
  const actor = team();
  let holders = 0;
  const text = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 300 })
    .filter((t) => !t.includes("\0") && Buffer.byteLength(t) <= 4096);
  await fc.assert(
    fc.asyncProperty(text, async (value) => {
      const holderId = `wl_any_${++holders}`;
      await put(actor, "ANY", value);
      await pin(actor, ["ANY"], holderId);
      expect(await reveal(actor, holderId)).toEqual([{ name: "ANY", value }]);
    }),
    { numRuns: 25 },
  );
  const longest = "é".repeat(2048);
  await put(actor, "ANY", longest);
  await pin(actor, ["ANY"], "wl_longest");
  expect(await reveal(actor, "wl_longest")).toEqual([{ name: "ANY", value: longest }]);
});

test("a holder keeps its versions through rotation, retirement and another pin, until it lets go", async () => {
  const actor = team();
  await put(actor, "A", "a1");
  await put(actor, "B", "b1");
  const first = await pin(actor, ["B", "A"], "wl_keeps");
  expect(first.map((p) => [p.name, p.version])).toEqual([
    ["B", 1],
    ["A", 1],
  ]);
  await put(actor, "A", "a2");
  await retireSecret(database.db, actor, "B", now);
  expect(await pin(actor, ["B", "A"], "wl_keeps")).toEqual(first);
  expect(await reveal(actor, "wl_keeps")).toEqual([
    { name: "A", value: "a1" },
    { name: "B", value: "b1" },
  ]);
  await database.db.command((tx) => pins.release(tx, "wl_keeps"));
  expect(await reveal(actor, "wl_keeps")).toEqual([]);
});

test("a reference to a name that is not in use names its place in the body", async () => {
  const actor = team();
  await put(actor, "A");
  const ask = { tenantId: actor.tenantId, names: ["A", "GONE"], field: "/policy/secret_refs" };
  const refusal = { kind: { code: "secret_not_found", status: 400 }, detail: { field: "/policy/secret_refs/1" } };
  await expect(pins.check(database.db, ask)).rejects.toMatchObject(refusal);
  await expect(pin(actor, ["A", "GONE"], "wl_refused")).rejects.toMatchObject(refusal);
  expect(await reveal(actor, "wl_refused")).toEqual([]);
  await pins.check(database.db, { ...ask, names: ["A"] });
});

test("a secret whose master key is gone is refused where it is referred to, until it is written again", async () => {
  const actor = team();
  await put(actor, "A");
  const next = new SecretBox({ id: "mk-2", key: randomBytes(32) });
  const without = new SecretPins(next);
  const ask = { tenantId: actor.tenantId, names: ["A"], field: "/policy/secret_refs" };
  const pinIt = () => database.db.command((tx) => without.pin(tx, { ...ask, holderId: "wl_unreadable", now }));
  const refusal = { kind: { code: "secret_unreadable", status: 409 }, detail: { field: "/policy/secret_refs/0" } };
  await expect(without.check(database.db, ask)).rejects.toMatchObject(refusal);
  await expect(pinIt()).rejects.toMatchObject(refusal);
  await putSecret({ db: database.db, box: next }, actor, { name: "A", value: "anew" }, now);
  await without.check(database.db, ask);
  await pinIt();
  expect(await without.reveal(database.db, { tenantId: actor.tenantId, holderId: "wl_unreadable" })).toEqual([
    { name: "A", value: "anew" },
  ]);
});

test("names and ids that no database can hold are unknown, not a fault", async () => {
  const actor = team();
  for (const name of ["A\0", "\0", "\ud800"]) {
    const unknown = { kind: { code: "secret_not_found" } };
    await expect(retireSecret(database.db, actor, name, now)).rejects.toMatchObject(unknown);
    await expect(pin(actor, [name], "wl_nul")).rejects.toMatchObject(unknown);
    await expect(pins.check(database.db, { tenantId: actor.tenantId, names: [name], field: "" })).rejects.toMatchObject(
      unknown,
    );
  }
});

test("another team sees, pins and retires nothing", async () => {
  const [owner, stranger] = [team(), team()];
  await put(owner, "TOKEN", "theirs");
  await pin(owner, ["TOKEN"], "wl_owner");
  expect(await listSecrets(database.db, stranger.tenantId, null, 10)).toEqual([]);
  await expect(retireSecret(database.db, stranger, "TOKEN", now)).rejects.toMatchObject({
    kind: { code: "secret_not_found" },
  });
  await expect(pin(stranger, ["TOKEN"], "wl_stranger")).rejects.toMatchObject({ kind: { code: "secret_not_found" } });
  expect(await reveal(stranger, "wl_owner")).toEqual([]);
});

test("a version goes seven days after it was replaced or retired, unless somebody holds it", async () => {
  const actor = team();
  await put(actor, "A", "replaced");
  await put(actor, "A", "held");
  await pin(actor, ["A"], "wl_long");
  await put(actor, "A", "retired");
  await retireSecret(database.db, actor, "A", now);
  await put(actor, "B", "in use");
  const sweep = async (at: Date) => {
    while ((await destroyRetiredSecrets(database.db, at, 2)) > 0);
    return (await versions(actor)).length;
  };
  expect(await sweep(days(7))).toBe(4);
  expect(await sweep(new Date(days(7).getTime() + 1))).toBe(2);
  expect(await reveal(actor, "wl_long")).toEqual([{ name: "A", value: "held" }]);
  await database.db.command((tx) => pins.release(tx, "wl_long"));
  expect(await sweep(days(8))).toBe(1);
});

test("a team has room for a limited number of names, and a new version needs no room", async () => {
  const actor = team();
  await database.db.sql(
    `insert into data.secret (id, tenant_id, name, version, created_at)
     select 'sec_fill_' || n, $1, 'FILL_' || n, 1, $2 from generate_series(1, $3::int) n`,
    [actor.tenantId, now, LIMITS.secretsPerTeam],
  );
  await expect(put(actor, "ONE_MORE")).rejects.toMatchObject({ kind: { code: "secret_limit", status: 409 } });
  expect((await put(actor, "FILL_1")).version).toBe(2);
});
