import type { CommandBounds, Queryer, Tx } from "../../../infra/db/database.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Attempt, Placement } from "../placement/placement.entity.ts";
import { Stage } from "../stage/stage.entity.ts";
import { Workload } from "../workload/workload.entity.ts";
import {
  NOT_THE_LATEST,
  ORDER_OVER,
  type OrderRows,
  type Session,
  type SessionRefusal,
  UNKNOWN_ORDER,
} from "./session.ts";

/** Whose rows an order's are; null for an order that is not known. */
export async function findOrder(q: Queryer, orderId: string): Promise<OrderRows | null> {
  // Nor may every text be asked of the database.
  if (!isId("order", orderId)) return null;
  const [rows] = await q.sql<Omit<OrderRows, "orderId">>(
    `select placement_id as "placementId", workload_id as "workloadId", tenant_id as "tenantId"
     from compute.attempt where id = $1`,
    [orderId],
  );
  return rows ? { orderId, ...rows } : null;
}

/** A host waits for the answer, and its team may wait for rows that somebody holds, as long as others need not. */
export function boundsOf({ tenantId }: OrderRows): CommandBounds {
  return { teamId: tenantId, lockWaitMs: LIMITS.requestLockWaitMs };
}

export interface LockedOrder {
  workload: Workload;
  stage: Stage;
  placement: Placement;
  attempt: Attempt;
}

/**
 * Locks the rows of an order that may still act, for the holder of its session: a stale order is refused, and so is a
 * session that a later exchange of the token replaced.
 */
export async function lockSession(tx: Tx, session: Session): Promise<LockedOrder | SessionRefusal> {
  // Asked for together and answered in this order, so the locks are taken in it and the rest is read under them.
  const [workload, placement, stage, attempt] = await Promise.all([
    tx.row(Workload, "where t.id = $1 for update", [session.workloadId]),
    tx.row(Placement, "where t.id = $1 for update", [session.placementId]),
    tx.row(Stage, "where t.id = (select stage_run_id from compute.placement where id = $1)", [session.placementId]),
    tx.row(Attempt, "where t.id = $1", [session.orderId]),
  ]);
  if (!workload || !placement || !stage || !attempt) return UNKNOWN_ORDER;
  if (!mayAct(placement, attempt)) return ORDER_OVER;
  return attempt.sessionHash === session.sessionHash ? { workload, stage, placement, attempt } : NOT_THE_LATEST;
}

/** Whether an attempt is the one of its generation that counts, and not over. */
export function mayAct(placement: Placement, attempt: Attempt): boolean {
  const isLive = placement.state === "provisioning" || placement.state === "running";
  return isLive && placement.orderId === attempt.id && ["launching", "booting", "running"].includes(attempt.state);
}
