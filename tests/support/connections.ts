import type { Queryer } from "../../infra/db/database.ts";
import { newId } from "../../infra/kernel/ids.ts";
import type { Connection } from "../../subgraphs/data/connection/connection.entity.ts";
import { findLiveSecret } from "../../subgraphs/data/secret/find-secret.ts";
import { sealContext } from "../../subgraphs/data/secret/seal-context.ts";
import type { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";

/** A connection's row as if its service had just answered, for tests of what uses connections; answers its id. */
export async function insertConnection(
  db: Queryer,
  tenantId: string,
  now: Date,
  given: Pick<Connection, "name" | "kind"> & { secret: string } & Partial<Connection>,
): Promise<string> {
  const secret = await findLiveSecret(db, tenantId, given.secret);
  if (!secret) throw new Error(`there is no secret ${given.secret}`);
  const id = newId("connection", now);
  const wandb = given.kind === "wandb";
  await db.sql(
    `insert into data.connection (id, tenant_id, name, kind, secret_id, secret_version, scope, entity, project,
       egress_hosts, live_mode, verified_at, created_at, created_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, 'mem_test')`,
    [
      ...[id, tenantId, given.name, given.kind, secret.id, secret.version, given.scope ?? (wandb ? "write" : "read")],
      ...[given.entity ?? null, given.project ?? null, given.egressHosts ?? [], given.liveMode ?? false, now],
    ],
  );
  return id;
}

/** What a job needs of a connection: its row, and the version of a secret that holds its credential. */
export interface SealedConnection {
  readonly id: string;
  readonly name: string;
  readonly secretId: string;
}

/** A connection with its credential sealed in this box, by what the two rows say, for tests of what opens connections. */
export async function insertSealedConnection(
  db: Queryer,
  box: SecretBox,
  now: Date,
  given: { tenantId: string; credential: string } & Pick<Connection, "scope"> &
    Partial<Pick<Connection, "kind" | "branch" | "region">>,
): Promise<SealedConnection> {
  const { tenantId, credential, scope, kind = "postgres", branch = null, region = null } = given;
  const [id, secretId] = [newId("connection", now), newId("secret", now)];
  const name = `shop-${id.slice(-12)}`;
  const sealed = box.seal(Buffer.from(credential), sealContext(tenantId, secretId, 1));
  await db.sql(
    `insert into data.secret_version (secret_id, version, tenant_id, master_key_id, wrapped_key, ciphertext, created_at)
     values ($1, 1, $2, $3, $4, $5, $6)`,
    [secretId, tenantId, sealed.masterKeyId, sealed.wrappedKey, sealed.ciphertext, now],
  );
  await db.sql(
    `insert into data.connection (id, tenant_id, name, kind, secret_id, secret_version, scope, branch, egress_hosts,
       live_mode, verified_at, created_at, created_by, region)
     values ($1, $2, $3, $4, $5, 1, $6, $7, '{}', false, $8, $8, 'key_1', $9)`,
    [id, tenantId, name, kind, secretId, scope, branch, now, region],
  );
  return { id, name, secretId };
}
