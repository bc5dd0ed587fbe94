import type { Queryer } from "../../../infra/db/database.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { Connection } from "./connection.entity.ts";
import { CONNECTION, CONNECTION_REFERENCE } from "./connection.refusals.ts";

/** What a name may look like; `conn_` at the start is for ids, and `github` is the team's account there. */
export function isConnectionName(text: string): boolean {
  return /^[A-Za-z][A-Za-z0-9_-]{0,127}$/.test(text) && !/^conn_/i.test(text) && text.toLowerCase() !== "github";
}

/** The team's connection by its name or id; null when it has none or it was deleted. */
export function findConnection(
  q: Queryer,
  { tenantId, idOrName }: { tenantId: string; idOrName: string },
): Promise<Connection | null> {
  if (isId("connection", idOrName)) return liveConnection(q, tenantId, "id", idOrName);
  if (isConnectionName(idOrName)) return liveConnection(q, tenantId, "name", idOrName);
  return Promise.resolve(null); // not every text may be asked of the database
}

function liveConnection(q: Queryer, tenantId: string, column: "id" | "name", value: string) {
  return q.row(Connection, `where t.tenant_id = $1 and t.${column} = $2 and t.deleted_at is null`, [tenantId, value]);
}

/** The connections of these ids whose pinned version is still the one in use of its secret. */
export async function activeConnectionIds(q: Queryer, ids: readonly string[]): Promise<Set<string>> {
  const rows = await q.sql<{ id: string }>(
    `select c.id from data.connection c
       join data.secret_version v on v.secret_id = c.secret_id and v.version = c.secret_version
      where c.id = any($1) and c.deleted_at is null and v.retired_at is null`,
    [ids],
  );
  return new Set(rows.map(({ id }) => id));
}

/**
 * Refuses as `connection_inactive` once the pinned version of the secret was replaced or retired. `field` is the pointer
 * of the reference in a body; none where the path names the connection.
 */
export async function requireActive(q: Queryer, connection: Pick<Connection, "id">, field?: string): Promise<void> {
  const active = await activeConnectionIds(q, [connection.id]);
  if (active.has(connection.id)) return;
  if (field === undefined) throw new Refused(CONNECTION.connection_inactive);
  throw new Refused(CONNECTION_REFERENCE.connection_inactive, { field });
}
