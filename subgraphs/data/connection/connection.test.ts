import { expect, test } from "vitest";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { Refused } from "../../../infra/kernel/refusal.ts";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { ConnectionWorld, refusal } from "../../../tests/support/connection-world.ts";
import { until } from "../../../tests/support/until.ts";
import { SecretPin } from "../secret/secret.entity.ts";
import type { ConnectionAsk } from "./check-create.ts";
import { findConnection } from "./find-connection.ts";

const world = ConnectionWorld.forThisFile();

test("a connection pins the version that was verified, and tells the team", async () => {
  const actor = world.administrator();
  await world.put(actor, "DB", "an earlier value");
  const secret = await world.put(actor, "DB", world.postgres.secret());
  const made = await world.create(actor, { region: "eu-1" });
  expect(made).toMatchObject({
    ...{ name: "shop", kind: "postgres", secretId: secret.id, secretVersion: 2, scope: "read", region: "eu-1" },
    ...{
      egressHosts: ["localhost"],
      liveMode: false,
      verifiedAt: world.now,
      createdAt: world.now,
      createdBy: "mem_admin",
    },
  });
  expect(await findConnection(world.database.db, { tenantId: actor.tenantId, idOrName: "shop" })).toEqual(made);
  expect(await findConnection(world.database.db, { tenantId: actor.tenantId, idOrName: made.id })).toEqual(made);
  expect(await world.events(actor)).toEqual([
    {
      ...{ type: "connection.verified", connection_id: made.id, name: "shop", kind: "postgres" },
      ...{ secret_version: 2, by: "mem_admin" },
    },
  ]);
});

test("a secret may be named by its id, and a key of no member is named as the maker", async () => {
  const actor = { ...world.administrator(), memberId: null, role: "team" } as const;
  const secret = await world.put(actor, "DB", world.postgres.secret());
  expect(await world.create(actor, { secret: secret.id })).toMatchObject({
    secretId: secret.id,
    createdBy: "key_admin",
  });
});

test("a neon connection keeps its branch, and a supabase one takes the form of its own", async () => {
  const actor = world.administrator();
  await world.put(actor, "DB", world.postgres.secret());
  expect(await world.create(actor, { name: "n", kind: "neon", branch: "main" })).toMatchObject({ branch: "main" });
  const { postgres_url, ca_cert } = JSON.parse(world.postgres.secret()) as Record<string, string>;
  const supabase = { project_url: "https://p.supabase.co", service_key: "k", postgres_url, ca_cert };
  await world.put(actor, "SB", JSON.stringify(supabase));
  expect(await world.create(actor, { name: "s", kind: "supabase", secret: "SB" })).toMatchObject({ kind: "supabase" });
});

test("verification leaves no session behind", async () => {
  await world.databaseConnection(world.administrator());
  const sessions = "select 1 from pg_stat_activity where application_name = 'nodus verify'";
  await until(
    "no session is left",
    async () => (await world.postgres.admin((client) => client.query(sessions))).rowCount === 0,
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
  const actor = world.administrator();
  await expect(world.create(actor, ask)).rejects.toMatchObject(refusal(code, { field }));
  expect(await world.stored(actor)).toEqual([]);
});

test.for<[Partial<ConnectionAsk>, string[]]>([
  [{ kind: "postgres" }, ["postgres_url", "ca_cert"]],
  [{ kind: "neon" }, ["postgres_url", "api_key", "ca_cert"]],
  [{ kind: "supabase" }, ["postgres_url", "project_url", "service_key", "ca_cert"]],
  [{ kind: "wandb" }, ["the API key alone"]],
])("a secret of another shape than %j needs is answered with the form that it should have", async ([ask, words]) => {
  const actor = world.administrator();
  await world.put(actor, "DB", "{ }");
  const error = await world.create(actor, ask).catch((e: unknown) => e);
  expect(error).toMatchObject(refusal("secret_shape_invalid", { field: "/secret" }));
  for (const word of words) expect((error as Refused).fix).toContain(word);
});

test("a secret of another shape is refused, without its text", async () => {
  const actor = world.administrator();
  await world.put(actor, "DB", "mysql://ann:hidden-value@db.example/shop");
  const error = await world.create(actor).catch((e: unknown) => e);
  expect(error).toMatchObject(refusal("secret_shape_invalid", { field: "/secret" }));
  expect(JSON.stringify(error) + String(error)).not.toContain("hidden-value");
});

test.for<[string, () => string, string]>([
  ["a wrong password", () => world.postgres.secret({ password: "wrong" }), "credentials_rejected"],
  ["a missing database", () => world.postgres.secret({ database: "missing" }), "database_refused"],
  ["an unknown authority", () => world.postgres.url(), "tls_untrusted"],
  ["nobody listening", () => "postgres://a:bcd@127.0.0.1:1/x", "unreachable"],
])("%s fails verification with its reason, and nothing is stored", async ([, secret, reason]) => {
  const actor = world.administrator();
  await world.put(actor, "DB", secret());
  await expect(world.create(actor)).rejects.toMatchObject(refusal("verification_failed", { extra: { reason } }));
  expect(await world.stored(actor)).toEqual([]);
  expect(await world.database.db.rows(SecretPin, "where t.tenant_id = $1", [actor.tenantId])).toEqual([]);
  expect(await world.events(actor)).toEqual([]);
});

test("a private address is refused as one unless the operator opened it", async () => {
  const actor = world.administrator();
  await world.put(actor, "DB", world.postgres.secret());
  await expect(world.create(actor, {}, { exceptions: new PrivateExceptions([]) })).rejects.toMatchObject(
    refusal("verification_failed", { extra: { reason: "private_address" } }),
  );
});

test("a name is taken once in a team, however many ask at once, and free in another", async () => {
  const [actor, other] = [world.administrator(), world.administrator()];
  await Promise.all([world.put(actor, "DB", world.postgres.secret()), world.put(other, "DB", world.postgres.secret())]);
  const tried = await Promise.allSettled([
    world.create(actor),
    world.create(actor),
    world.create(actor),
    world.create(other),
  ]);
  expect(tried.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  for (const one of tried)
    if (one.status === "rejected") expect(one.reason).toMatchObject(refusal("connection_exists", { field: "/name" }));
  await expect(world.create(actor)).rejects.toMatchObject(refusal("connection_exists"));
});

test("a team has room for a limited number of connections", async () => {
  const actor = world.administrator();
  await world.database.db.sql(
    `insert into data.connection (id, tenant_id, name, kind, secret_id, secret_version, scope, egress_hosts, live_mode,
       verified_at, created_at, created_by)
     select 'conn_fill' || n || $1, $1, 'fill' || n, 'postgres', 'sec_x', 1, 'read', '{}', false, $2, $2, 'key_1'
       from generate_series(1, $3::int) n`,
    [actor.tenantId, world.now, LIMITS.connectionsPerTeam],
  );
  await expect(world.databaseConnection(actor)).rejects.toMatchObject(refusal("connection_limit"));
});
