import type { Database, Tx } from "../../../infra/db/database.ts";
import { Attempt, Placement } from "../placement/placement.entity.ts";
import { Workload } from "../workload/workload.entity.ts";
import type { LifecycleDeps } from "./lifecycle-deps.ts";
import { mayAct } from "./locked-order.ts";
import { NOT_THE_LATEST, ORDER_OVER, type Session, type SessionRefusal, UNKNOWN_ORDER } from "./session.ts";

/** An order of a host that may go on, as the rows are. */
export interface LiveOrder {
  workload: Workload;
  placement: Placement;
}

/** The host was heard: writes it down, and keeps `placement` in step. Its row is locked. */
export async function renewLease(tx: Tx, placement: Placement, leaseMs: number, now: Date): Promise<void> {
  placement.lastBeatAt = now;
  placement.leaseExpiresAt = new Date(now.getTime() + leaseMs);
  await tx.sql("update compute.placement set last_beat_at = $2, lease_expires_at = $3 where id = $1", [
    placement.id,
    now,
    placement.leaseExpiresAt,
  ]);
}

/**
 * Renews a lease and does nothing else, so that it needs no row but the placement's, and waits for none: the host of a
 * team whose account or workload somebody holds is there all the same. Null while the placement itself is held.
 */
export async function renewLeaseAlone(
  { db, clock, settings }: Pick<LifecycleDeps, "db" | "clock" | "settings">,
  session: Session,
): Promise<LiveOrder | SessionRefusal | null> {
  const now = clock.now();
  const renewed = await db.sql(
    `update compute.placement set last_beat_at = $4, lease_expires_at = $5
     where tenant_id = $1 and id = (
       select p.id from compute.placement p join compute.attempt a on a.id = p.order_id
       where p.id = $2 and a.id = $3 and a.session_hash = $6 and p.state in ('provisioning', 'running')
         and a.state in ('launching', 'booting', 'running') for no key update of p skip locked)
     returning 1`,
    [
      ...[session.tenantId, session.placementId, session.orderId],
      ...[now, new Date(now.getTime() + settings.leaseMs)],
      session.sessionHash,
    ],
  );
  const order = await liveOrder(db, session);
  return renewed.length > 0 || "refused" in order ? order : null;
}

/** The order of a session as it is, nothing locked. */
export async function liveOrder(db: Database, session: Session): Promise<LiveOrder | SessionRefusal> {
  const [placement, workload, attempt] = await Promise.all([
    db.row(Placement, "where t.id = $1", [session.placementId]),
    db.row(Workload, "where t.id = $1", [session.workloadId]),
    db.row(Attempt, "where t.id = $1", [session.orderId]),
  ]);
  if (!placement || !workload || !attempt) return UNKNOWN_ORDER;
  if (!mayAct(placement, attempt)) return ORDER_OVER;
  return attempt.sessionHash === session.sessionHash ? { workload, placement } : NOT_THE_LATEST;
}
