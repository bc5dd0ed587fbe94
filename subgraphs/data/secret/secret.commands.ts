import type { Database, Queryer, Tx } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { announceInactiveConnections } from "../connection/inactive-connections.ts";
import { sealContext } from "./seal-context.ts";
import { Secret } from "./secret.entity.ts";
import { SECRET } from "./secret.refusals.ts";
import type { SecretBox } from "./secret-box.ts";
import { isSecretName, requireSecretName, secretBytes } from "./secret-value.ts";

/**
 * Writes a new version of the name: the next one while the name is in use, version 1 of a new secret otherwise. Never
 * deduplicated: the same value twice makes two versions. Answers what is known of the secret, never the value.
 */
export async function putSecret(
  deps: { db: Database; box: SecretBox },
  actor: Actor,
  input: { name: string; value: string },
  now: Date,
): Promise<Secret> {
  requireSecretName(input.name);
  const value = secretBytes(input.value);
  return deps.db.command(async (tx) => {
    const secret = await nextVersion(tx, actor.tenantId, input.name, now);
    const sealed = deps.box.seal(value, sealContext(actor.tenantId, secret.id, secret.version));
    const versions = await retireVersions(tx, actor.tenantId, secret.id, now);
    await tx.sql(
      `insert into data.secret_version (secret_id, version, tenant_id, master_key_id, wrapped_key, ciphertext, created_at)
       values ($1, $2, $3, $4, $5, $6, $7)`,
      [secret.id, secret.version, actor.tenantId, sealed.masterKeyId, sealed.wrappedKey, sealed.ciphertext, now],
    );
    await announceInactiveConnections(tx, { ...retiredBy(actor, now), secretId: secret.id, versions });
    return secret;
  });
}

/** Takes the row of the live name, whose lock makes concurrent writers of one name take turns. */
async function nextVersion(tx: Tx, tenantId: string, name: string, now: Date): Promise<Secret> {
  await requireRoom(tx, tenantId, name);
  const [row] = await tx.sql<{ id: string; version: number }>(
    `insert into data.secret as s (id, tenant_id, name, version, created_at) values ($1, $2, $3, 1, $4)
     on conflict (tenant_id, name) where retired_at is null
     do update set version = s.version + 1, created_at = excluded.created_at
     returning id, version`,
    [newId("secret", now), tenantId, name, now],
  );
  return Object.assign(new Secret(), { ...row, tenantId, name, createdAt: now, retiredAt: null });
}

async function requireRoom(tx: Tx, tenantId: string, name: string): Promise<void> {
  const [{ others } = { others: 0n }] = await tx.sql<{ others: bigint }>(
    "select count(*) as others from data.secret where tenant_id = $1 and retired_at is null and name <> $2",
    [tenantId, name],
  );
  if (others >= BigInt(LIMITS.secretsPerTeam)) throw new Refused(SECRET.secret_limit);
}

/** Takes the name out of use. Who holds a version of it keeps that; `secret_not_found` when the name is not in use. */
export function retireSecret(db: Database, actor: Actor, name: string, now: Date): Promise<Secret> {
  return db.command(async (tx) => {
    if (!isSecretName(name)) throw new Refused(SECRET.secret_not_found);
    const secret = await tx.row(Secret, "where t.tenant_id = $1 and t.name = $2 and t.retired_at is null for update", [
      actor.tenantId,
      name,
    ]);
    if (!secret) throw new Refused(SECRET.secret_not_found);
    await tx.sql("update data.secret set retired_at = $3 where tenant_id = $1 and id = $2", [
      actor.tenantId,
      secret.id,
      now,
    ]);
    const versions = await retireVersions(tx, actor.tenantId, secret.id, now);
    await announceInactiveConnections(tx, { ...retiredBy(actor, now), secretId: secret.id, versions });
    return Object.assign(secret, { retiredAt: now });
  });
}

/** Takes what is in use of a secret out of use, and answers which versions that were. */
async function retireVersions(tx: Tx, tenantId: string, secretId: string, now: Date): Promise<number[]> {
  const retired = await tx.sql<{ version: number }>(
    `update data.secret_version set retired_at = $3
      where tenant_id = $1 and secret_id = $2 and retired_at is null returning version`,
    [tenantId, secretId, now],
  );
  return retired.map(({ version }) => version);
}

function retiredBy({ tenantId, memberId, keyId }: Actor, now: Date) {
  return { tenantId, by: memberId ?? keyId, now };
}

/** The names in use, in order, after one. */
export function listSecrets(q: Queryer, tenantId: string, after: string | null, limit: number): Promise<Secret[]> {
  return q.rows(
    Secret,
    `where t.tenant_id = $1 and t.retired_at is null and ($2::text is null or t.name collate "C" > $2)
     order by t.name collate "C" limit $3`,
    [tenantId, after, limit],
  );
}
