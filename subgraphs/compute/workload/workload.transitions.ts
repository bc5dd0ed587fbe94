import type { Tx } from "../../../infra/db/database.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { topics } from "../topics.ts";
import { isTerminal, type WorkloadEventName, type WorkloadState, workloadMachine } from "./workload.machine.ts";

/**
 * Appends an event under the workload's row lock: numbers have no gaps and appear in commit order. Its time is never
 * before the last event's: who waited for the lock has read the clock earlier, and the wall clock may have been set back.
 */
export async function appendEvent(
  tx: Tx,
  workloadId: string,
  type: string,
  payload: Record<string, unknown>,
  now: Date,
): Promise<void> {
  const eventId = newId("event", now);
  const [event] = await tx.sql<{ tenant_id: string; payload: Record<string, unknown>; created_at: Date }>(
    `with w as (update compute.workload set event_seq = event_seq + 1, updated_at = greatest(updated_at, $5) where id = $2
                returning event_seq, tenant_id, status, revision, updated_at)
     insert into compute.workload_event (id, tenant_id, workload_id, seq, type, payload, created_at)
     select $1, w.tenant_id, $2, w.event_seq, $3, jsonb_build_object('status', w.status, 'revision', w.revision) || $4::jsonb, w.updated_at
     from w returning tenant_id, payload, created_at`,
    [eventId, workloadId, type, JSON.stringify(payload), now],
  );
  if (!event) throw new Error(`no workload ${workloadId} to append ${type} to`);
  tx.wake(topics.workload(workloadId));
  const subject = { workload_id: workloadId };
  const { tenant_id: tenantId, created_at: at } = event;
  await tx.offer({ tenantId, eventId, type, subject, payload: event.payload, now: at });
}

/** What a change of status brings with it. */
export interface Transition {
  event: WorkloadEventName;
  now: Date;
  /** Type of the recorded event; `workload.<new state>` unless said. */
  type?: string;
  payload?: Record<string, unknown>;
  /** For the end: why, and a sentence for people. */
  reason?: string | null;
  message?: string | null;
  exitCode?: number | null;
  signal?: string | null;
}

/**
 * Moves a workload along its machine under its row lock and records the event. Returns the new state, or null when the
 * event is late or repeated and nothing changed.
 */
export async function moveWorkload(tx: Tx, workloadId: string, transition: Transition): Promise<WorkloadState | null> {
  const { event, now } = transition;
  const [row] = await tx.sql<{ status: WorkloadState }>(
    "select status from compute.workload where id = $1 for update",
    [workloadId],
  );
  if (!row) throw new Error(`no workload ${workloadId} to ${event}`);
  const next = workloadMachine.decide(row.status, event);
  if (next === "ignore" || next === "refuse") return null;
  const over = isTerminal(next);
  await tx.sql(
    `update compute.workload set status = $2, revision = revision + 1, updated_at = greatest(updated_at, $3), waiting_reason = null, waiting_since = null,
       reason = coalesce($4, reason), message = coalesce($5, message), exit_code = coalesce($6, exit_code), signal = coalesce($7, signal),
       terminal_at = case when $8 then $3 else terminal_at end
     where id = $1`,
    [
      workloadId,
      next,
      now,
      transition.reason ?? null,
      transition.message ?? null,
      transition.exitCode ?? null,
      transition.signal ?? null,
      over,
    ],
  );
  await appendEvent(tx, workloadId, transition.type ?? `workload.${next}`, transition.payload ?? {}, now);
  return next;
}

/** A workload that turned terminal makes room under its team's limit of unfinished ones. Touches the account: call it last. */
export async function leaveActiveRuns(tx: Tx, workloadId: string): Promise<void> {
  await tx.sql(
    `update compute.account a set active_runs = active_runs - 1 from compute.workload w
     where w.id = $1 and a.id = w.tenant_id and a.active_runs > 0`,
    [workloadId],
  );
}
