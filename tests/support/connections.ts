import type { Queryer } from "../../infra/db/database.ts";
import { newId } from "../../infra/kernel/ids.ts";
import type { Connection } from "../../subgraphs/data/connection/connection.entity.ts";
import { findLiveSecret } from "../../subgraphs/data/secret/find-secret.ts";

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
