import type { Tx } from "../../../infra/db/database.ts";
import { appendAccountEvent } from "../account-event/append-account-event.ts";
import { Connection } from "./connection.entity.ts";

/**
 * Tells the team which of its connections can't be used any more because these versions were just replaced or retired.
 * Call it last in the command that did so: it takes the lock of the team's stream of events.
 */
export async function announceInactiveConnections(
  tx: Tx,
  retired: { tenantId: string; secretId: string; versions: readonly number[]; by: string; now: Date },
): Promise<void> {
  const { tenantId, secretId, versions, by, now } = retired;
  const gone = await tx.rows(
    Connection,
    "where t.tenant_id = $1 and t.secret_id = $2 and t.secret_version = any($3) and t.deleted_at is null order by t.id",
    [tenantId, secretId, versions],
  );
  for (const { id, name, kind, secretVersion } of gone)
    await appendAccountEvent(tx, {
      tenantId,
      type: "connection.inactive",
      payload: { connection_id: id, name, kind, secret_version: secretVersion, by },
      now,
    });
}
