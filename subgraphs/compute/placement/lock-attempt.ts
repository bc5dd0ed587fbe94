import type { Tx } from "../../../infra/db/database.ts";
import { Stage } from "../stage/stage.entity.ts";
import { Attempt, Placement } from "./placement.entity.ts";

/** An attempt with all that hangs on it, locked in the order that every command keeps: workload, stage, placement, attempt. */
export interface LockedAttempt {
  attempt: Attempt;
  placement: Placement;
  stage: Stage;
}

/** Null for an order that is not known. */
export async function lockAttempt(tx: Tx, orderId: string): Promise<LockedAttempt | null> {
  const [ids] = await tx.sql<{ workload_id: string; placement_id: string; stage_run_id: string }>(
    `select a.workload_id, a.placement_id, p.stage_run_id from compute.attempt a
     join compute.placement p on p.id = a.placement_id where a.id = $1`,
    [orderId],
  );
  if (!ids) return null;
  await tx.sql("select 1 from compute.workload where id = $1 for update", [ids.workload_id]);
  const stage = await tx.row(Stage, "where t.id = $1 for update", [ids.stage_run_id]);
  const placement = await tx.row(Placement, "where t.id = $1 for update", [ids.placement_id]);
  const attempt = await tx.row(Attempt, "where t.id = $1 for update", [orderId]);
  return stage && placement && attempt && { attempt, placement, stage };
}
