import type { Tx } from "../../../infra/db/database.ts";
import type { OfferedEvent } from "../../../infra/db/offered-event.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { topics } from "../topics.ts";
import { type WorkloadEventName, workloadMachine } from "../workload/workload.machine.ts";
import type { WorkloadEvent } from "../workload/workload-event.entity.ts";
import type { DueStage, DueWorkload } from "./fair-batch.ts";
import { manyOrOne, manyRows, oneRow } from "./json-rows.ts";

/**
 * Moves and events of a batch of workloads whose rows are locked: what `moveWorkload` does for one, in one
 * statement for all of them.
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
    if (this.#changed.size === 0) return;
    const eventsOf = Map.groupBy(this.#events, (event) => event.workloadId);
    const changed = [...this.#changed.values()].map(({ workload, tenantId }) => ({
      workload_id: workload.id,
      tenant_id: tenantId,
      status: workload.status,
      revision: workload.revision,
      event_seq: workload.eventSeq,
      waiting_reason: workload.waitingReason,
      waiting_since: workload.waitingSince,
      events: (eventsOf.get(workload.id) ?? []).map(({ id, seq, type, payload, createdAt }) => {
        return { id, seq, type, payload, created_at: createdAt };
      }),
    }));
    const { many, json } = manyOrOne(changed);
    await Promise.all([tx.sql(many ? STEP_MANY : STEP_ONE, [json, this.#now]), tx.offer(...this.#events.map(offered))]);
    for (const { workload_id } of changed) tx.wake(topics.workload(workload_id));
  }
}

/** `$1` the workloads with their events, `$2` now. */
const stepFrom = (source: string) => `with step as materialized (
    select * from ${source} as r(workload_id text, tenant_id text, status text, revision int, event_seq int,
      waiting_reason text, waiting_since timestamptz, events jsonb)),
  moved as (
    update compute.workload w set status = r.status, revision = r.revision, event_seq = r.event_seq,
      waiting_reason = r.waiting_reason, waiting_since = r.waiting_since, updated_at = greatest(w.updated_at, $2)
    from step r where w.id = r.workload_id and w.tenant_id = r.tenant_id)
  insert into compute.workload_event (id, tenant_id, workload_id, seq, type, payload, created_at)
  select e.id, r.tenant_id, r.workload_id, e.seq, e.type, e.payload, e.created_at
  from step r, jsonb_to_recordset(r.events) as e(id text, seq int, type text, payload jsonb, created_at timestamptz)`;

const STEP_ONE = stepFrom(oneRow("$1"));
const STEP_MANY = stepFrom(manyRows("$1"));

function offered({ id, tenantId, workloadId, type, payload, createdAt }: WorkloadEvent): OfferedEvent {
  return { tenantId, eventId: id, type, subject: { workload_id: workloadId }, payload, now: createdAt };
}
