import type { Tx } from "../../../infra/db/database.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { Connection } from "./connection.entity.ts";
import { CONNECTION_REFERENCE } from "./connection.refusals.ts";
import type { SecretVersionPin } from "./open-database.ts";

/** What a holder keeps of a connection. */
export interface PinnedConnection {
  connection: Connection;
  pin: SecretVersionPin;
}

/**
 * The name that a holder's pin of a credential has among its pins of secrets: none that a secret could have, so a run
 * that uses the same secret by its name as well keeps both.
 */
export function credentialPinName(connectionId: string): string {
  return `connection/${connectionId}`;
}

/**
 * Marks the connection as in use by the holder and keeps its version of the secret from destruction, until
 * `releaseConnections`. Once a holder has a connection, pinning it again changes nothing. Refused as
 * `connection_not_found` (400) and, when the pinned version is not in use any more, `connection_inactive` (409).
 *
 * `keep` is for work that was admitted before: it may go on with the version that it was admitted with as long as that
 * version exists, whatever became of the connection.
 */
export async function pinConnection(
  tx: Tx,
  ask: { tenantId: string; connectionId: string; holderId: string; now: Date; keep?: SecretVersionPin; field?: string },
): Promise<PinnedConnection> {
  const { tenantId, connectionId, holderId, now, keep } = ask;
  const at = ask.field === undefined ? {} : { field: ask.field };
  // A deletion waits for us, or we see what it did.
  const connection = await tx.row(Connection, "where t.tenant_id = $1 and t.id = $2 for share", [
    tenantId,
    connectionId,
  ]);
  if (!connection || (connection.deletedAt && !keep)) throw new Refused(CONNECTION_REFERENCE.connection_not_found, at);
  const pin = keep ?? { secretId: connection.secretId, version: connection.secretVersion };
  await requireVersion(tx, tenantId, pin, keep === undefined, at);
  await tx.sql(
    `insert into data.connection_use (holder_id, connection_id, tenant_id, created_at) values ($1, $2, $3, $4)
     on conflict (holder_id, connection_id) do nothing`,
    [holderId, connectionId, tenantId, now],
  );
  await tx.sql(
    `insert into data.secret_pin (holder_id, name, tenant_id, secret_id, version, created_at)
     values ($1, $2, $3, $4, $5, $6) on conflict (holder_id, name) do nothing`,
    [holderId, credentialPinName(connectionId), tenantId, pin.secretId, pin.version, now],
  );
  return { connection, pin };
}

/** The lock keeps the version from being replaced or destroyed before the pin is in. */
async function requireVersion(
  tx: Tx,
  tenantId: string,
  pin: SecretVersionPin,
  inUse: boolean,
  at: { field?: string },
): Promise<void> {
  const found = await tx.sql(
    `select 1 from data.secret_version where tenant_id = $1 and secret_id = $2 and version = $3
        and ($4::bool is false or retired_at is null) for share`,
    [tenantId, pin.secretId, pin.version, inUse],
  );
  if (found.length === 0) throw new Refused(CONNECTION_REFERENCE.connection_inactive, at);
}

/** Lets go of all connections of a holder and of their credentials. */
export async function releaseConnections(tx: Tx, holderId: string): Promise<void> {
  await tx.sql(
    `with gone as (delete from data.connection_use where holder_id = $1 returning connection_id)
     delete from data.secret_pin where holder_id = $1 and name in (select 'connection/' || connection_id from gone)`,
    [holderId],
  );
}
