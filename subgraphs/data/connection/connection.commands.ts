import type { Database, Queryer, Tx } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { appendAccountEvent } from "../account-event/append-account-event.ts";
import { findLiveSecret } from "../secret/find-secret.ts";
import { openVersion } from "../secret/open-version.ts";
import { SECRET_REFERENCE } from "../secret/secret.refusals.ts";
import type { SecretBox } from "../secret/secret-box.ts";
import { type CheckedConnection, type ConnectionAsk, checkCreate } from "./check-create.ts";
import { Connection } from "./connection.entity.ts";
import { CONNECTION } from "./connection.refusals.ts";
import { ConnectionFailure } from "./connection-failure.ts";
import { credentialPinName } from "./connection-uses.ts";
import { type Credential, readCredential, SECRET_FORMS, WrongShape } from "./credential-shape.ts";
import { findConnection, requireActive } from "./find-connection.ts";
import type { SecretVersionPin } from "./open-database.ts";
import { type VerifyDeps, verifyCredential } from "./verify-credential.ts";
import { WANDB_HOSTS } from "./wandb-viewer.ts";

export interface ConnectionDeps extends VerifyDeps {
  db: Database;
  secretBox: SecretBox;
}

/**
 * Makes a connection once its credential was seen to work. The newest version of the secret is pinned for good: a later
 * version needs another connection. Nothing is stored when the service does not answer as it should.
 */
export async function createConnection(deps: ConnectionDeps, actor: Actor, ask: ConnectionAsk): Promise<Connection> {
  const { db, clock } = deps;
  const checked = checkCreate(ask, actor);
  await requireFreeName(db, actor.tenantId, checked.name);
  const secret = await findLiveSecret(db, actor.tenantId, ask.secret);
  if (!secret) throw new Refused(SECRET_REFERENCE.secret_not_found, { field: "/secret" });
  const pin = { secretId: secret.id, version: secret.version };
  const text = await openVersion(db, deps.secretBox, { tenantId: actor.tenantId, ...pin });
  if (text === null) throw new Refused(SECRET_REFERENCE.secret_unreadable, { field: "/secret" });
  const credential = requireShape(checked, text);
  await requireWorking(deps, credential);
  return store(deps, actor, { checked, pin, egressHosts: hostsOf(credential), now: clock.now() });
}

interface NewConnection {
  checked: CheckedConnection;
  pin: SecretVersionPin;
  egressHosts: string[];
  now: Date;
}

function store({ db }: ConnectionDeps, actor: Actor, { checked, pin, egressHosts, now }: NewConnection) {
  const { tenantId } = actor;
  const id = newId("connection", now);
  const by = actor.memberId ?? actor.keyId;
  return db.command(async (tx) => {
    await requireVersionInUse(tx, tenantId, pin, "/secret");
    await requireRoom(tx, tenantId);
    const made = await tx.sql(
      `insert into data.connection (id, tenant_id, name, kind, secret_id, secret_version, scope, region, branch, entity,
         project, egress_hosts, live_mode, verified_at, created_at, created_by)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15)
       on conflict (tenant_id, name) where deleted_at is null do nothing returning id`,
      [
        ...[id, tenantId, checked.name, checked.kind, pin.secretId, pin.version, checked.scope, checked.region],
        ...[checked.branch, checked.entity, checked.project, egressHosts, checked.liveMode, now, by],
      ],
    );
    if (made.length === 0) throw new Refused(CONNECTION.connection_exists, { field: "/name" });
    await tx.sql(
      `insert into data.secret_pin (holder_id, name, tenant_id, secret_id, version, created_at)
       values ($1, $2, $3, $4, $5, $6)`,
      [id, credentialPinName(id), tenantId, pin.secretId, pin.version, now],
    );
    const connection = (await tx.row(Connection, "where t.tenant_id = $1 and t.id = $2", [tenantId, id]))!;
    await announce(tx, "connection.verified", connection, by, now);
    if (checked.liveMode) await announce(tx, "connection.live_mode_enabled", connection, by, now);
    return connection;
  });
}

/** Looks again whether a connection's credential works, while its version is the one in use. */
export async function verifyConnection(deps: ConnectionDeps, actor: Actor, idOrName: string): Promise<Connection> {
  const { db, clock } = deps;
  const { tenantId } = actor;
  const connection = await requireConnection(db, tenantId, idOrName);
  await requireActive(db, connection);
  const pin = { secretId: connection.secretId, version: connection.secretVersion };
  const text = await openVersion(db, deps.secretBox, { tenantId, ...pin });
  if (text === null) throw new Refused(SECRET_REFERENCE.secret_unreadable);
  await requireWorking(deps, requireShape(connection, text));
  const now = clock.now();
  return db.command(async (tx) => {
    await requireVersionInUse(tx, tenantId, pin);
    const found = await tx.sql(
      `update data.connection set verified_at = greatest(verified_at, $3)
        where tenant_id = $1 and id = $2 and deleted_at is null returning id`,
      [tenantId, connection.id, now],
    );
    if (found.length === 0) throw new Refused(COMMON.not_found);
    const verified = (await tx.row(Connection, "where t.tenant_id = $1 and t.id = $2", [tenantId, connection.id]))!;
    await announce(tx, "connection.verified", verified, actor.memberId ?? actor.keyId, now);
    return verified;
  });
}

/**
 * Takes a connection out of use; its name is free again. The secret and everything outside stay as they are. Refused as
 * `connection_in_use` while a run, an export or a load uses it.
 */
export function deleteConnection(db: Database, actor: Actor, idOrName: string, now: Date): Promise<Connection> {
  const { tenantId } = actor;
  return db.command(async (tx) => {
    const { id } = await requireConnection(tx, tenantId, idOrName);
    // A use that begins just now waits for us, or we see it.
    const connection = await tx.row(
      Connection,
      "where t.tenant_id = $1 and t.id = $2 and t.deleted_at is null for update",
      [tenantId, id],
    );
    if (!connection) throw new Refused(COMMON.not_found);
    const [use] = await tx.sql<{ holder_id: string }>(
      "select holder_id from data.connection_use where tenant_id = $1 and connection_id = $2 order by created_at limit 1",
      [tenantId, id],
    );
    if (use)
      throw new Refused(CONNECTION.connection_in_use, {
        message: `The connection is used by ${use.holder_id}.`,
        extra: { holder_id: use.holder_id },
      });
    await tx.sql("update data.connection set deleted_at = $3 where tenant_id = $1 and id = $2", [tenantId, id, now]);
    await tx.sql("delete from data.secret_pin where tenant_id = $1 and holder_id = $2", [tenantId, id]);
    await announce(tx, "connection.deleted", connection, actor.memberId ?? actor.keyId, now);
    return Object.assign(connection, { deletedAt: now });
  });
}

/** The team's connection by its name or id; refused as `not_found`. */
export async function requireConnection(q: Queryer, tenantId: string, idOrName: string): Promise<Connection> {
  const connection = await findConnection(q, { tenantId, idOrName });
  if (!connection) throw new Refused(COMMON.not_found);
  return connection;
}

/** The team's connections in order of their names, after one. */
export function listConnections(q: Queryer, tenantId: string, after: string | null, limit: number) {
  return q.rows(
    Connection,
    `where t.tenant_id = $1 and t.deleted_at is null and ($2::text is null or t.name collate "C" > $2)
     order by t.name collate "C" limit $3`,
    [tenantId, after, limit],
  );
}

/** Asked before the service is, so that a repeated request does not disturb it; the index has the last word. */
async function requireFreeName(q: Queryer, tenantId: string, name: string): Promise<void> {
  if (await findConnection(q, { tenantId, idOrName: name }))
    throw new Refused(CONNECTION.connection_exists, { field: "/name" });
}

function requireShape({ kind }: { kind: Connection["kind"] }, text: string): Credential {
  try {
    return readCredential(kind, text);
  } catch (error) {
    if (!(error instanceof WrongShape)) throw error;
    throw new Refused(CONNECTION.secret_shape_invalid, {
      field: "/secret",
      message: error.message,
      fix: `${SECRET_FORMS[kind]} Then create the connection.`,
    });
  }
}

async function requireWorking(deps: ConnectionDeps, credential: Credential): Promise<void> {
  try {
    await verifyCredential(deps, credential);
  } catch (error) {
    if (!(error instanceof ConnectionFailure)) throw error;
    throw new Refused(CONNECTION.verification_failed, { message: error.message, extra: { reason: error.reason } });
  }
}

/** The shared lock keeps a rotation out until our commit: what was verified is what is pinned. */
async function requireVersionInUse(tx: Tx, tenantId: string, pin: SecretVersionPin, field?: string): Promise<void> {
  const found = await tx.sql(
    `select 1 from data.secret_version where tenant_id = $1 and secret_id = $2 and version = $3 and retired_at is null
        for share`,
    [tenantId, pin.secretId, pin.version],
  );
  if (found.length === 0)
    throw new Refused(CONNECTION.connection_inactive, {
      message: "The secret was replaced or retired while its version was verified.",
      ...(field === undefined ? {} : { field }),
    });
}

async function requireRoom(tx: Tx, tenantId: string): Promise<void> {
  const [{ count } = { count: 0n }] = await tx.sql<{ count: bigint }>(
    "select count(*) as count from data.connection where tenant_id = $1 and deleted_at is null",
    [tenantId],
  );
  if (count >= BigInt(LIMITS.connectionsPerTeam)) throw new Refused(CONNECTION.connection_limit);
}

function hostsOf(credential: Credential): string[] {
  return credential.kind === "wandb" ? [...WANDB_HOSTS] : [credential.login.host];
}

function announce(
  tx: Tx,
  type: "connection.verified" | "connection.deleted" | "connection.live_mode_enabled",
  connection: Connection,
  by: string,
  now: Date,
): Promise<void> {
  const { id, name, kind, secretVersion, tenantId } = connection;
  const payload = { connection_id: id, name, kind, secret_version: secretVersion, by };
  return appendAccountEvent(tx, { tenantId, type, payload, now });
}
