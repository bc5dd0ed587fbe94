import type { Tx } from "../../../infra/db/database.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import { toUsd } from "../../../infra/kernel/micros.ts";
import type { KilledBy, Want } from "../../../infra/runner/protocol.ts";
import { closeWorkload, commitLog, releaseAttempt, settlePlacement } from "../jobs.ts";
import { accruedCharge } from "../ledger/meter.ts";
import { Attempt, Placement } from "../placement/placement.entity.ts";
import { attemptMachine, placementMachine } from "../placement/placement.machine.ts";
import { endOpenStages } from "../stage/stage.commands.ts";
import { Stage } from "../stage/stage.entity.ts";
import { topics } from "../topics.ts";
import { Workload } from "../workload/workload.entity.ts";
import { appendEvent, leaveActiveRuns, moveWorkload } from "../workload/workload.transitions.ts";
import { afterLoss, recordInterruption, recover } from "./recovery.ts";

/**
 * How things end. Rows are locked in one order everywhere: workload, stages, placement, attempt, and the account last.
 * Every function here may be called again with the same facts; what is already over stays as it is.
 */

export interface WorkloadEnd {
  workloadId: string;
  event: "complete" | "fail" | "cancel";
  reason: string | null;
  message: string | null;
  exitCode?: number | null;
  signal?: string | null;
  payload?: Record<string, unknown>;
  now: Date;
}

/** Ends a workload with everything that is still open of it. False when it was over already. */
export async function finishWorkload(tx: Tx, end: WorkloadEnd): Promise<boolean> {
  const { workloadId, event, reason, message, now } = end;
  const moved = await moveWorkload(tx, workloadId, {
    event,
    now,
    reason,
    message,
    exitCode: end.exitCode,
    signal: end.signal,
    payload: {
      reason,
      message,
      exit_code: end.exitCode ?? null,
      signal: end.signal ?? null,
      ...(await outcome(tx, workloadId, now)),
      ...end.payload,
    },
  });
  if (moved === null) return false;
  await endOpenStages(tx, workloadId, event, reason, now);
  const open = await tx.sql<{ id: string }>(
    "select id from compute.placement where workload_id = $1 and state in ('provisioning', 'running') order by id",
    [workloadId],
  );
  for (const { id } of open) await endPlacement(tx, { placementId: id, outcome: moved, message, now });
  const [unsettled] = await tx.sql(
    "select id from compute.placement where workload_id = $1 and state <> 'closed' limit 1",
    [workloadId],
  );
  // Otherwise the settlement of the last placement sends for it.
  if (!unsettled) await enqueue(tx, closeWorkload, { workloadId }, now);
  await leaveActiveRuns(tx, workloadId);
  return true;
}

/** What came of a workload: its results, and what it has cost, posted or not. */
async function outcome(tx: Tx, workloadId: string, now: Date): Promise<{ outputs: number; spend_usd: number }> {
  const [workload] = await tx.sql<{ outputs: bigint; spend: bigint }>(
    `select w.spend_micros as spend,
       (select count(*) from compute.output o join compute.stage s using (workload_id, stage_id, generation)
        where o.workload_id = w.id and s.status = 'completed') as outputs
     from compute.workload w where w.id = $1 for update`,
    [workloadId],
  );
  const unposted = await tx.rows(Placement, "where t.workload_id = $1 and t.state <> 'closed'", [workloadId]);
  const spend = unposted.reduce(
    (sum, p) => sum + accruedCharge({ ...p, ranMs: p.ranMs ?? heardMs(p, now) }, now).totalMicros,
    workload?.spend ?? 0n,
  );
  return { outputs: Number(workload?.outputs ?? 0n), spend_usd: toUsd(spend) };
}

export interface PlacementEnd {
  placementId: string;
  /** `completed`, `failed`, `cancelled`, `lost`, … */
  outcome: string;
  message?: string | null;
  exitCode?: number | null;
  signal?: string | null;
  oom?: boolean;
  killedBy?: KilledBy | null;
  /** Measured by the host; without it, running counts up to the last time that the host was heard. */
  ranMs?: number | null;
  interruptTrigger?: string | null;
  /** The host said that the log is whole. */
  logWhole?: boolean;
  now: Date;
}

/** Ends a generation: what it used is released by jobs from here on, and late writers of it are fenced. */
export async function endPlacement(tx: Tx, end: PlacementEnd): Promise<void> {
  const { placementId, now } = end;
  const placement = await tx.row(Placement, "where t.id = $1 for update", [placementId]);
  if (!placement || placementMachine.decide(placement.state, "end") === "ignore") return;
  const ranMs = placement.ranMs ?? end.ranMs ?? heardMs(placement, now);
  await tx.sql(
    `update compute.placement set state = 'ended', outcome = $2, message = coalesce($3, message), exit_code = coalesce(exit_code, $4),
       signal = coalesce(signal, $5), oom = oom or $6, killed_by = coalesce(killed_by, $7), ran_ms = $8,
       interrupt_trigger = coalesce($9, interrupt_trigger), ended_at = coalesce(ended_at, $10), lease_expires_at = null,
       log_complete = true, log_tail_lost = log_tail_lost or (running_at is not null and not $11)
     where id = $1`,
    [
      placementId,
      end.outcome,
      end.message ?? null,
      end.exitCode ?? null,
      end.signal ?? null,
      end.oom ?? false,
      end.killedBy ?? null,
      ranMs,
      end.interruptTrigger ?? null,
      now,
      end.logWhole ?? placement.logComplete,
    ],
  );
  await endAttempt(tx, placement.orderId, "end", now);
  if (placement.logBytes > 0) await enqueue(tx, commitLog, { placementId }, now);
  tx.wake(topics.log(placement.workloadId));
  // A host that ended by itself knows; any other must hear that it is fenced.
  if (!end.logWhole) tx.wake(topics.order(placement.orderId));
  await closeIfGone(tx, placementId, now);
}

/** Running time up to the last sign of life: nobody pays for time in which we do not know that anything ran. */
function heardMs(placement: Placement, now: Date): number {
  if (!placement.runningAt) return 0;
  const heardAt = Math.min((placement.lastBeatAt ?? placement.runningAt).getTime(), now.getTime());
  return Math.max(0, heardAt - placement.runningAt.getTime());
}

/** Ends an attempt and sends for its release at the supplier. */
async function endAttempt(tx: Tx, orderId: string, event: "end" | "fail", now: Date): Promise<void> {
  const attempt = await tx.row(Attempt, "where t.id = $1 for update", [orderId]);
  if (!attempt) return;
  const next = attemptMachine.decide(attempt.state, event);
  if (next === "ignore" || next === "refuse") return;
  await tx.sql("update compute.attempt set state = $2, terminate_requested_at = $3 where id = $1", [
    orderId,
    next,
    now,
  ]);
  await enqueue(tx, releaseAttempt, { orderId }, now);
}

/** Asks the host of a running generation to stop it; its exit record then ends the workload. */
export async function requestStop(
  tx: Tx,
  workloadId: string,
  want: Want,
  now: Date,
): Promise<"asked" | "nothing_running"> {
  const asked = await tx.sql<{ order_id: string }>(
    `update compute.placement set want = case when want = 'run' then $2 else want end
     where workload_id = $1 and state = 'running' and lease_expires_at > $3 returning order_id`,
    [workloadId, want, now],
  );
  for (const { order_id } of asked) tx.wake(topics.order(order_id));
  return asked.length > 0 ? "asked" : "nothing_running";
}

/** Once a generation is over and its suppliers hold nothing of it any more, says so and sends for the settlement. */
export async function closeIfGone(tx: Tx, placementId: string, now: Date): Promise<void> {
  const gone = await tx.sql<{ workload_id: string; stage_id: string; generation: number }>(
    `update compute.placement p set gone_at = $2
     where p.id = $1 and p.state = 'ended' and p.gone_at is null
       and not exists (select 1 from compute.attempt a where a.placement_id = p.id and a.state <> 'gone')
     returning p.workload_id, p.stage_id, p.generation`,
    [placementId, now],
  );
  const [row] = gone;
  if (!row) return;
  await appendEvent(
    tx,
    row.workload_id,
    "workload.resources_released",
    { stage_id: row.stage_id, generation: row.generation, confirmed_at: now.toISOString() },
    now,
  );
  await tx.sql(
    `update compute.workload w set resources_released_at = $2
     where w.id = $1 and w.terminal_at is not null and w.resources_released_at is null
       and not exists (select 1 from compute.placement p where p.workload_id = w.id and p.gone_at is null)`,
    [row.workload_id, now],
  );
  await enqueue(tx, settlePlacement, { placementId }, now);
}

/** Ends a generation that was lost and decides by the stage's policy whether another follows. */
export async function loseGeneration(
  tx: Tx,
  lost: { placementId: string; trigger: string; ranMs?: number; logWhole?: boolean; now: Date },
): Promise<void> {
  const { placementId, trigger, now } = lost;
  const [found] = await tx.sql<{ workload_id: string; stage_run_id: string }>(
    "select workload_id, stage_run_id from compute.placement where id = $1",
    [placementId],
  );
  if (!found) return;
  const { workload_id: workloadId, stage_run_id: stageRunId } = found;
  const workload = await tx.row(Workload, "where t.id = $1 for update", [workloadId]);
  const stage = await tx.row(Stage, "where t.id = $1 for update", [stageRunId]);
  // Looked at under the locks: whoever was faster may have ended it and begun the next generation.
  const placement = await tx.row(Placement, "where t.id = $1 for update", [placementId]);
  if (!workload || !stage || !placement) return;
  if (placementMachine.decide(placement.state, "end") !== "ended") return;
  const { ranMs, logWhole } = lost;
  await endPlacement(tx, { placementId, outcome: "lost", interruptTrigger: trigger, ranMs, logWhole, now });
  await recordInterruption(tx, placement, trigger, now);
  const verdict = afterLoss(workload, stage, placement, now);
  if (verdict === "recover") await recover(tx, stage, placement, trigger, now);
  else await finishWorkload(tx, { workloadId, ...verdict, now });
}
