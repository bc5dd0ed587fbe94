import type { Tx } from "../../../infra/db/database.ts";

/** Ends what is pending of a team that has no webhook to send to. An attempt that is under way is dropped when it settles. */
export async function giveUpDeliveries(tx: Tx, tenantId: string, now: Date): Promise<void> {
  await tx.sql(
    `update data.webhook_delivery set state = 'failed', last_error = 'webhook_off', ended_at = $2, due_at = null,
       queued_until = null, claimed_until = null
     where tenant_id = $1 and state = 'pending'`,
    [tenantId, now],
  );
}
