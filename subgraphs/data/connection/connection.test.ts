import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type Actor, SCOPES } from "../../../infra/kernel/actor.ts";
import { type Clock, FakeClock, systemClock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { Refused } from "../../../infra/kernel/refusal.ts";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { startTlsPostgres, type TlsPostgres } from "../../../tests/support/tls-postgres.ts";
import { until } from "../../../tests/support/until.ts";
import { startWandbServer, type WandbServer } from "../../../tests/support/wandb-server.ts";
import { AccountEvent } from "../account-event/account-event.entity.ts";
import { dataEntities } from "../entities.ts";
import { destroyRetiredSecrets } from "../secret/destroy-retired-secrets.ts";
import { putSecret, retireSecret } from "../secret/secret.commands.ts";
import { SecretPin, SecretVersion } from "../secret/secret.entity.ts";
import { SecretBox } from "../secret/secret-box.ts";
import type { ConnectionAsk } from "./check-create.ts";
import {
  type ConnectionDeps,
  createConnection,
  deleteConnection,
  listConnections,
  verifyConnection,
} from "./connection.commands.ts";
import { Connection, ConnectionUse } from "./connection.entity.ts";
import { pinConnection, releaseConnections } from "./connection-uses.ts";
import { findConnection } from "./find-connection.ts";

const API_KEY = "wandb-key-0123456789abcdef";
let database: TestDatabase;
let postgres: TlsPostgres;
let wandb: WandbServer;
let now: Date;
const box = new SecretBox({ id: "mk-1", key: randomBytes(32) });
const OPEN = new PrivateExceptions(["localhost", "127.0.0.0/8"]);

beforeAll(async () => {
  postgres = await startTlsPostgres();
  wandb = await startWandbServer(API_KEY);
  database = await testDatabase(dataEntities);
});
afterAll(async () => {
  await Promise.all([database?.close(), postgres?.close(), wandb?.close()]);
});
beforeEach(() => {
  now = new Date("2026-03-01T12:00:00Z");
  wandb.behave("as the API");
});

let teams = 0;
/** A team's administrator, whom no other test knows. */
const administrator = (): Actor => ({
  ...{ tenantId: `team_${++teams}`, keyId: "key_admin", memberId: "mem_admin", email: "a@example.com", name: "A" },
  role: "admin",
  scopes: SCOPES,
});
/** The wall clock stands at `now`, time-outs are real. */
const clock: Clock = { now: () => now, monotonicMs: () => systemClock.monotonicMs(), sleep: systemClock.sleep };
const deps = (over: Partial<ConnectionDeps> = {}): ConnectionDeps => ({
  ...{ db: database.db, secretBox: box, exceptions: OPEN, clock, wandb },
  ...over,
});
const put = (actor: Actor, name: string, value: string) =>
  putSecret({ db: database.db, box }, actor, { name, value }, now);
const create = (actor: Actor, ask: Partial<ConnectionAsk> = {}, over: Partial<ConnectionDeps> = {}) =>
  createConnection(deps(over), actor, { name: "shop", kind: "postgres", secret: "DB", ...ask });
const events = async (actor: Actor) =>
  (await database.db.rows(AccountEvent, "where t.tenant_id = $1 order by t.seq", [actor.tenantId])).map(
    ({ type, payload }) => ({ type, ...payload }),
  );
const stored = (actor: Actor) => database.db.rows(Connection, "where t.tenant_id = $1", [actor.tenantId]);
const refusal = (code: string, detail: object = {}) => ({ kind: { code }, detail });
const pin = (actor: Actor, connectionId: string, holderId: string, keep?: { secretId: string; version: number }) =>
  database.db.command((tx) =>
    pinConnection(tx, { tenantId: actor.tenantId, connectionId, holderId, now, ...(keep ? { keep } : {}) }),
  );
const release = (holderId: string) => database.db.command((tx) => releaseConnections(tx, holderId));

async function databaseConnection(actor: Actor, ask: Partial<ConnectionAsk> = {}) {
  await put(actor, "DB", postgres.secret());
  return create(actor, ask);
}

test("a connection pins the version that was verified, and tells the team", async () => {
  const actor = administrator();
  await put(actor, "DB", "an earlier value");
  const secret = await put(actor, "DB", postgres.secret());
  const made = await create(actor, { region: "eu-1" });
  expect(made).toMatchObject({
    ...{ name: "shop", kind: "postgres", secretId: secret.id, secretVersion: 2, scope: "read", region: "eu-1" },
    ...{ egressHosts: ["localhost"], liveMode: false, verifiedAt: now, createdAt: now, createdBy: "mem_admin" },
  });
  expect(await findConnection(database.db, { tenantId: actor.tenantId, idOrName: "shop" })).toEqual(made);
  expect(await findConnection(database.db, { tenantId: actor.tenantId, idOrName: made.id })).toEqual(made);
  expect(await events(actor)).toEqual([
    {
      ...{ type: "connection.verified", connection_id: made.id, name: "shop", kind: "postgres" },
      ...{ secret_version: 2, by: "mem_admin" },
    },
  ]);
});

test("a secret may be named by its id, and a key of no member is named as the maker", async () => {
  const actor = { ...administrator(), memberId: null, role: "team" } as const;
  const secret = await put(actor, "DB", postgres.secret());
  expect(await create(actor, { secret: secret.id })).toMatchObject({ secretId: secret.id, createdBy: "key_admin" });
});

test("a neon connection keeps its branch, and a supabase one takes the form of its own", async () => {
  const actor = administrator();
  await put(actor, "DB", postgres.secret());
  expect(await create(actor, { name: "n", kind: "neon", branch: "main" })).toMatchObject({ branch: "main" });
  const { postgres_url, ca_cert } = JSON.parse(postgres.secret()) as Record<string, string>;
  const supabase = { project_url: "https://p.supabase.co", service_key: "k", postgres_url, ca_cert };
  await put(actor, "SB", JSON.stringify(supabase));
  expect(await create(actor, { name: "s", kind: "supabase", secret: "SB" })).toMatchObject({ kind: "supabase" });
});

test("verification leaves no session behind", async () => {
  await databaseConnection(administrator());
  const sessions = "select 1 from pg_stat_activity where application_name = 'nodus verify'";
  await until(
    "no session is left",
    async () => (await postgres.admin((client) => client.query(sessions))).rowCount === 0,
  );
});

test.for<[string, Partial<ConnectionAsk>, string, string]>([
  ["a name with a digit first", { name: "1a" }, "invalid_connection_name", "/name"],
  ["a name with a dot", { name: "a.b" }, "invalid_connection_name", "/name"],
  ["a name of 129 characters", { name: "a".repeat(129) }, "invalid_connection_name", "/name"],
  ["the name github", { name: "GitHub" }, "invalid_connection_name", "/name"],
  ["a name like an id", { name: "conn_1" }, "invalid_connection_name", "/name"],
  ["a branch of a plain database", { branch: "main" }, "invalid_connection", "/branch"],
  ["an entity of a database", { entity: "e" }, "invalid_connection", "/entity"],
  ["a region with a line break", { region: "a\nb" }, "invalid_connection", "/region"],
  ["live mode of a database", { liveMode: true }, "invalid_connection", "/live_mode"],
  ["live mode that only reads", { kind: "wandb", liveMode: true, scope: "read" }, "invalid_connection", "/scope"],
  ["live mode without entity", { kind: "wandb", liveMode: true, project: "p" }, "invalid_connection", "/entity"],
  ["live mode without project", { kind: "wandb", liveMode: true, entity: "e" }, "invalid_connection", "/project"],
  ["a secret that is not there", { secret: "NONE" }, "secret_not_found", "/secret"],
  ["a secret's name that no database can hold", { secret: "A\0" }, "secret_not_found", "/secret"],
])("%s is refused and nothing is stored", async ([, ask, code, field]) => {
  const actor = administrator();
  await expect(create(actor, ask)).rejects.toMatchObject(refusal(code, { field }));
  expect(await stored(actor)).toEqual([]);
});

test.for<[Partial<ConnectionAsk>, string[]]>([
  [{ kind: "postgres" }, ["postgres_url", "ca_cert"]],
  [{ kind: "neon" }, ["postgres_url", "api_key", "ca_cert"]],
  [{ kind: "supabase" }, ["postgres_url", "project_url", "service_key", "ca_cert"]],
  [{ kind: "wandb" }, ["the API key alone"]],
])("a secret of another shape than %j needs is answered with the form that it should have", async ([ask, words]) => {
  const actor = administrator();
  await put(actor, "DB", "{ }");
  const error = await create(actor, ask).catch((e: unknown) => e);
  expect(error).toMatchObject(refusal("secret_shape_invalid", { field: "/secret" }));
  for (const word of words) expect((error as Refused).fix).toContain(word);
});

test("a secret of another shape is refused, without its text", async () => {
  const actor = administrator();
  await put(actor, "DB", "mysql://ann:hidden-value@db.example/shop");
  const error = await create(actor).catch((e: unknown) => e);
  expect(error).toMatchObject(refusal("secret_shape_invalid", { field: "/secret" }));
  expect(JSON.stringify(error) + String(error)).not.toContain("hidden-value");
});

test.for<[string, () => string, string]>([
  ["a wrong password", () => postgres.secret({ password: "wrong" }), "credentials_rejected"],
  ["a missing database", () => postgres.secret({ database: "missing" }), "database_refused"],
  ["an unknown authority", () => postgres.url(), "tls_untrusted"],
  ["nobody listening", () => "postgres://a:bcd@127.0.0.1:1/x", "unreachable"],
])("%s fails verification with its reason, and nothing is stored", async ([, secret, reason]) => {
  const actor = administrator();
  await put(actor, "DB", secret());
  await expect(create(actor)).rejects.toMatchObject(refusal("verification_failed", { extra: { reason } }));
  expect(await stored(actor)).toEqual([]);
  expect(await database.db.rows(SecretPin, "where t.tenant_id = $1", [actor.tenantId])).toEqual([]);
  expect(await events(actor)).toEqual([]);
});

test("a private address is refused as one unless the operator opened it", async () => {
  const actor = administrator();
  await put(actor, "DB", postgres.secret());
  await expect(create(actor, {}, { exceptions: new PrivateExceptions([]) })).rejects.toMatchObject(
    refusal("verification_failed", { extra: { reason: "private_address" } }),
  );
});

test("a name is taken once in a team, however many ask at once, and free in another", async () => {
  const [actor, other] = [administrator(), administrator()];
  await Promise.all([put(actor, "DB", postgres.secret()), put(other, "DB", postgres.secret())]);
  const tried = await Promise.allSettled([create(actor), create(actor), create(actor), create(other)]);
  expect(tried.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  for (const one of tried)
    if (one.status === "rejected") expect(one.reason).toMatchObject(refusal("connection_exists", { field: "/name" }));
  await expect(create(actor)).rejects.toMatchObject(refusal("connection_exists"));
});

test("a team has room for a limited number of connections", async () => {
  const actor = administrator();
  await database.db.sql(
    `insert into data.connection (id, tenant_id, name, kind, secret_id, secret_version, scope, egress_hosts, live_mode,
       verified_at, created_at, created_by)
     select 'conn_fill' || n || $1, $1, 'fill' || n, 'postgres', 'sec_x', 1, 'read', '{}', false, $2, $2, 'key_1'
       from generate_series(1, $3::int) n`,
    [actor.tenantId, now, LIMITS.connectionsPerTeam],
  );
  await expect(databaseConnection(actor)).rejects.toMatchObject(refusal("connection_limit"));
});

test("a wandb key is shown to work by asking whose it is", async () => {
  const actor = administrator();
  await put(actor, "WB", API_KEY);
  const made = await create(actor, { name: "wb", kind: "wandb", secret: "WB" });
  expect(made).toMatchObject({ scope: "write", liveMode: false, entity: null });
  expect(made.egressHosts).toEqual(["api.wandb.ai", "files.wandb.ai", "storage.googleapis.com"]);
  expect(wandb.asked.at(-1)!.path).toBe("POST /graphql");
  expect(JSON.parse(wandb.asked.at(-1)!.body).query).toContain("viewer");
});

test.for<[string, Parameters<WandbServer["behave"]>[0], string]>([
  ["is not let in", { status: 401, text: "" }, "credentials_rejected"],
  ["gets no GraphQL", { status: 200, text: `<html>${API_KEY}` }, "database_refused"],
  ["gets more than an answer", { status: 200, text: " ".repeat(70_000) }, "database_refused"],
  ["is sent elsewhere", { status: 302, text: "" }, "database_refused"],
  ["meets a broken service", { status: 503, text: "" }, "unreachable"],
])("a wandb key that %s fails verification", async ([, how, reason]) => {
  const actor = administrator();
  await put(actor, "WB", API_KEY);
  wandb.behave(how);
  await expect(create(actor, { kind: "wandb", secret: "WB" })).rejects.toMatchObject(
    refusal("verification_failed", { extra: { reason } }),
  );
});

test("a wandb key of nobody, an untrusted server and a private one are told apart", async () => {
  const actor = administrator();
  await put(actor, "WB", "wandb-key-of-nobody");
  const ask = { kind: "wandb", secret: "WB" } as const;
  const failed = (reason: string) => refusal("verification_failed", { extra: { reason } });
  await expect(create(actor, ask)).rejects.toMatchObject(failed("credentials_rejected"));
  const untrusted = { wandb: { origin: wandb.origin } };
  await expect(create(actor, ask, untrusted)).rejects.toMatchObject(failed("tls_untrusted"));
  const byAddress = { wandb: { origin: wandb.origin.replace("localhost", "127.0.0.1"), ca: wandb.ca } };
  await expect(create(actor, ask, byAddress)).rejects.toMatchObject(failed("tls_host_mismatch"));
  const closed = { exceptions: new PrivateExceptions([]) };
  await expect(create(actor, ask, closed)).rejects.toMatchObject(failed("private_address"));
});

test("a service that stays silent is given up after five seconds", async () => {
  const actor = administrator();
  await put(actor, "WB", API_KEY);
  wandb.behave("silent");
  const fake = new FakeClock(now);
  const before = wandb.asked.length;
  const made = create(actor, { kind: "wandb", secret: "WB" }, { clock: fake }).catch((e: unknown) => e);
  await until("the service is asked", () => wandb.asked.length > before);
  await fake.advance(4_999);
  await fake.advance(1);
  expect(await made).toMatchObject(refusal("verification_failed", { extra: { reason: "timeout" } }));
});

test("live mode is for an administrator's own key alone, and the team is told who switched it on", async () => {
  const actor = administrator();
  await put(actor, "WB", API_KEY);
  const ask = { name: "wb", kind: "wandb", secret: "WB", entity: "e", project: "p", liveMode: true } as const;
  const others: Partial<Actor>[] = [
    { role: "member" },
    { role: "team", memberId: null },
    { role: "admin", memberId: null },
    { scopes: ["data:read", "data:write"] },
  ];
  for (const other of others)
    await expect(create({ ...actor, ...other }, ask)).rejects.toMatchObject({
      kind: { code: "admin_required", status: 403 },
    });
  expect(await create(actor, ask)).toMatchObject({ liveMode: true, entity: "e", project: "p", scope: "write" });
  expect(await events(actor)).toMatchObject([
    { type: "connection.verified" },
    { type: "connection.live_mode_enabled", kind: "wandb", secret_version: 1, by: "mem_admin" },
  ]);
});

test("verifying again moves the time on, and what fails leaves it", async () => {
  const actor = administrator();
  const made = await databaseConnection(actor);
  now = new Date("2026-03-02T12:00:00Z");
  const closed = deps({ exceptions: new PrivateExceptions([]) });
  await expect(verifyConnection(closed, actor, "shop")).rejects.toMatchObject(refusal("verification_failed"));
  expect(await stored(actor)).toMatchObject([{ verifiedAt: made.verifiedAt }]);
  const verified = await verifyConnection(deps(), actor, "shop");
  expect(verified).toEqual({ ...made, verifiedAt: now });
  expect(await verifyConnection(deps(), actor, made.id)).toEqual(verified);
  expect((await events(actor)).map(({ type }) => type)).toEqual(Array(3).fill("connection.verified"));
});

test("a new version and a retirement make a connection inactive, once each, and say so", async () => {
  const actor = administrator();
  const made = await databaseConnection(actor);
  await put(actor, "DB", postgres.secret());
  await expect(verifyConnection(deps(), actor, "shop")).rejects.toMatchObject({
    kind: { code: "connection_inactive", status: 409 },
  });
  await expect(pin(actor, made.id, "wl_1")).rejects.toMatchObject({
    kind: { code: "connection_inactive", status: 409 },
  });
  const second = await create(actor, { name: "second" });
  await retireSecret(database.db, actor, "DB", now);
  await expect(pin(actor, second.id, "wl_1")).rejects.toMatchObject(refusal("connection_inactive"));
  const told = (await events(actor)).filter(({ type }) => type === "connection.inactive");
  expect(told).toMatchObject([
    { connection_id: made.id, secret_version: 1, by: "mem_admin" },
    { connection_id: second.id, secret_version: 2, by: "mem_admin" },
  ]);
});

test.for(["rotated", "retired"])("a secret that is %s while its version is verified is not connected", async (how) => {
  const actor = administrator();
  await put(actor, "WB", API_KEY);
  const held = Promise.withResolvers<void>();
  wandb.behave({ heldUntil: held.promise });
  const before = wandb.asked.length;
  const made = create(actor, { kind: "wandb", secret: "WB" }).catch((e: unknown) => e);
  await until("the service is asked", () => wandb.asked.length > before);
  if (how === "rotated") await put(actor, "WB", API_KEY);
  else await retireSecret(database.db, actor, "WB", now);
  held.resolve();
  expect(await made).toMatchObject(refusal("connection_inactive", { field: "/secret" }));
  expect(await stored(actor)).toEqual([]);
});

test("a connection in use is not deleted; once it is let go it is, and its name is free again", async () => {
  const actor = administrator();
  const made = await databaseConnection(actor);
  await pin(actor, made.id, "wl_1");
  await pin(actor, made.id, "wl_1");
  await expect(deleteConnection(database.db, actor, "shop", now)).rejects.toMatchObject({
    kind: { code: "connection_in_use", status: 409 },
    detail: { extra: { holder_id: "wl_1" } },
  });
  await release("wl_1");
  await deleteConnection(database.db, actor, "shop", now);
  expect(await listConnections(database.db, actor.tenantId, null, 10)).toEqual([]);
  await expect(deleteConnection(database.db, actor, "shop", now)).rejects.toMatchObject(refusal("not_found"));
  await expect(pin(actor, made.id, "wl_2")).rejects.toMatchObject({
    kind: { code: "connection_not_found", status: 400 },
  });
  expect((await create(actor)).id).not.toBe(made.id);
  expect((await events(actor)).map(({ type }) => type)).toEqual([
    "connection.verified",
    "connection.deleted",
    "connection.verified",
  ]);
});

test("a use and a deletion at the same moment end with one of them, never with both", async () => {
  const actor = administrator();
  await put(actor, "DB", postgres.secret());
  for (let round = 0; round < 8; round++) {
    const { id } = await create(actor, { name: `c${round}` });
    const [used, deleted] = await Promise.allSettled([
      pin(actor, id, `wl_race_${round}`),
      deleteConnection(database.db, actor, id, now),
    ]);
    expect([used.status, deleted.status].sort()).toEqual(["fulfilled", "rejected"]);
  }
});

test("work that was admitted goes on with its version after rotation and deletion, as long as that version exists", async () => {
  const actor = administrator();
  const made = await databaseConnection(actor);
  const { pin: kept } = await pin(actor, made.id, "wl_1");
  await put(actor, "DB", postgres.secret());
  expect((await pin(actor, made.id, "load_1", kept)).pin).toEqual(kept);
  await release("wl_1");
  await expect(deleteConnection(database.db, actor, "shop", now)).rejects.toMatchObject(refusal("connection_in_use"));
  await release("load_1");
  await deleteConnection(database.db, actor, "shop", now);
  await pin(actor, made.id, "load_2", kept);
  const late = new Date(now.getTime() + LIMITS.retiredSecretMs + 1);
  await destroyRetiredSecrets(database.db, late);
  await pin(actor, made.id, "load_3", kept);
  await release("load_2");
  await release("load_3");
  await destroyRetiredSecrets(database.db, late);
  await expect(pin(actor, made.id, "load_4", kept)).rejects.toMatchObject(refusal("connection_inactive"));
  expect(await database.db.rows(ConnectionUse, "where t.tenant_id = $1", [actor.tenantId])).toEqual([]);
});

test("a retired version lives as long as a connection pins it, and goes seven days later once it does not", async () => {
  const actor = administrator();
  await databaseConnection(actor);
  await put(actor, "DB", postgres.secret());
  const late = new Date(now.getTime() + LIMITS.retiredSecretMs + 1);
  const versions = async () =>
    (await database.db.rows(SecretVersion, "where t.tenant_id = $1", [actor.tenantId])).length;
  await destroyRetiredSecrets(database.db, late);
  expect(await versions()).toBe(2);
  await deleteConnection(database.db, actor, "shop", now);
  await destroyRetiredSecrets(database.db, new Date(late.getTime() - 1));
  expect(await versions()).toBe(2);
  await destroyRetiredSecrets(database.db, late);
  expect(await versions()).toBe(1);
});

test("another team's connection is not there: not to read, verify, delete or use", async () => {
  const [owner, stranger] = [administrator(), administrator()];
  const made = await databaseConnection(owner);
  for (const idOrName of [made.id, "shop", "a\0", ""]) {
    expect(await findConnection(database.db, { tenantId: stranger.tenantId, idOrName })).toBeNull();
    await expect(verifyConnection(deps(), stranger, idOrName)).rejects.toMatchObject(refusal("not_found"));
    await expect(deleteConnection(database.db, stranger, idOrName, now)).rejects.toMatchObject(refusal("not_found"));
  }
  await expect(pin(stranger, made.id, "wl_1")).rejects.toMatchObject(refusal("connection_not_found"));
  const kept = { secretId: made.secretId, version: made.secretVersion };
  await expect(pin(stranger, made.id, "wl_1", kept)).rejects.toMatchObject(refusal("connection_not_found"));
});
