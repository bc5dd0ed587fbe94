import type { Tx } from "../../../infra/db/database.ts";
import type { OfferedEvent } from "../../../infra/db/offered-event.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { topics } from "../topics.ts";
import { type WorkloadEventName, workloadMachine } from "../workload/workload.machine.ts";
import { WorkloadEvent } from "../workload/workload-event.entity.ts";
import type { DueStage, DueWorkload } from "./fair-batch.ts";
import { insertRows } from "./insert-rows.ts";

/**
 * Moves and events of a batch of workloads whose rows are locked: what `moveWorkload` does for one, in two
 * statements for all of them and one write.
 */
export class WorkloadSteps {
  readonly #now: Date;
  readonly #changed = new Map<string, { workload: DueWorkload; tenantId: string }>();
  readonly #events: WorkloadEvent[] = [];

  constructor(now: Date) {
    this.#now = now;
  }

  /** Moves the stage's workload, recording `workload.<state>`; nothing happens where its machine ignores the event. */
  move(stage: DueStage, event: WorkloadEventName, payload: Record<string, unknown>): void {
    const { workload } = stage;
    const next = workloadMachine.decide(workload.status, event);
    if (next === "ignore" || next === "refuse") return;
    workload.status = next;
    workload.revision += 1;
    workload.waitingReason = null;
    workload.waitingSince = null;
    this.record(stage, `workload.${next}`, payload);
  }

  /** Records an event without a move. */
  record(stage: DueStage, type: string, payload: Record<string, unknown>): void {
    const { workload, tenantId } = stage;
    workload.eventSeq += 1;
    this.#changed.set(workload.id, { workload, tenantId });
    this.#events.push({
      id: newId("event", this.#now),
      tenantId,
      workloadId: workload.id,
      seq: workload.eventSeq,
      type,
      payload: { status: workload.status, revision: workload.revision, ...payload },
      createdAt: new Date(Math.max(workload.updatedAt.getTime(), this.#now.getTime())),
    });
  }

  /** Says why the workload waits now; since when is kept for as long as it does nothing but wait. */
  wait({ workload, tenantId }: DueStage, reason: string): void {
    if (workload.waitingReason === reason) return;
    workload.waitingReason = reason;
    workload.waitingSince ??= this.#now;
    this.#changed.set(workload.id, { workload, tenantId });
  }

  /** The workload does not wait any more. */
  stopWaiting({ workload, tenantId }: DueStage): void {
    if (workload.waitingReason === null) return;
    workload.waitingReason = null;
    workload.waitingSince = null;
    this.#changed.set(workload.id, { workload, tenantId });
  }

  async write(tx: Tx): Promise<void> {
    const changed = [...this.#changed.values()].map((c) => c.workload);
    if (changed.length === 0) return;
    const updated = tx.sql(
      `update compute.workload w set status = v.status, revision = v.revision, event_seq = v.event_seq,
         waiting_reason = v.waiting_reason, waiting_since = v.waiting_since, updated_at = greatest(w.updated_at, $7)
       from unnest($1::text[], $2::text[], $3::int[], $4::int[], $5::text[], $6::timestamptz[])
         as v(id, status, revision, event_seq, waiting_reason, waiting_since)
       where w.id = v.id`,
      [
        changed.map((w) => w.id),
        changed.map((w) => w.status),
        changed.map((w) => w.revision),
        changed.map((w) => w.eventSeq),
        changed.map((w) => w.waitingReason),
        changed.map((w) => w.waitingSince),
        this.#now,
      ],
    );
    const inserted = insertRows(tx, WorkloadEvent, this.#events);
    await Promise.all([updated, inserted, tx.offer(...this.#events.map(offered))]);
    for (const { id } of changed) tx.wake(topics.workload(id));
  }
}

function offered({ id, tenantId, workloadId, type, payload, createdAt }: WorkloadEvent): OfferedEvent {
  return { tenantId, eventId: id, type, subject: { workload_id: workloadId }, payload, now: createdAt };
}
