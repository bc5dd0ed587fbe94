import { instance, selectList } from "../../../infra/db/columns.ts";
import type { Tx } from "../../../infra/db/database.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { enforceDeadline, placeStage } from "../jobs.ts";
import type { StageSpec } from "../stage/stage.entity.ts";
import type { StageDraft, ValidWorkload } from "./validate/validate.ts";
import { Workload } from "./workload.entity.ts";

export interface AcceptedStage {
  draft: StageDraft;
  spec: StageSpec;
}

/**
 * Writes a workload, its stages and its first event in one statement, and the jobs that go on with it: admission is the
 * busiest command. The first stage wants capacity at once; the first event has number 1, which the workload's row begins
 * with.
 */
export async function insertAccepted(
  tx: Tx,
  actor: Actor,
  { id, workload, stages, now }: { id: string; workload: ValidWorkload; stages: readonly AcceptedStage[]; now: Date },
): Promise<Workload> {
  const { payload, maxCostMicros, completeBy } = workload;
  const stageRows = stages.map((stage, position) => stageRow(stage, position, now));
  const eventId = newId("event", now);
  const event = acceptedEvent(workload, actor, stages[0]!.spec);
  // Asked for in one turn, they leave in one write.
  const [[row]] = await Promise.all([
    tx.sql<Record<string, unknown>>(
      `with accepted as (
       insert into compute.workload as t (id, tenant_id, owner_user_id, key_id, name, status, revision, payload,
         max_cost_micros, complete_by, spend_micros, held_micros, event_seq, log_seq, created_at, updated_at)
       values ($1, $2, $3, $4, $5, 'accepted', 1, $6, $7, $8, 0, 0, 1, 0, $9, $9) returning ${selectList(Workload)}),
     stages as (
       insert into compute.stage (id, tenant_id, workload_id, stage_id, position, status, spec, continuity_mode, generation,
         fence, completed_units, total_units, next_try_at, failed_offer_ids, recoveries, created_at)
       select s.id, $2, $1, s.stage_id, s.position, s.status, s.spec, s.continuity_mode, 0, 0, 0, s.total_units, $9, '{}', 0, $9
       from jsonb_to_recordset($10::jsonb) as s(id text, stage_id text, position int, status text, spec jsonb,
         continuity_mode text, total_units int)),
     event as (
       insert into compute.workload_event (id, tenant_id, workload_id, seq, type, payload, created_at)
       values ($11, $2, $1, 1, 'workload.accepted', $12, $9))
     select * from accepted`,
      [
        id,
        actor.tenantId,
        actor.memberId,
        actor.keyId,
        payload.name ?? "",
        JSON.stringify(payload),
        maxCostMicros,
        completeBy,
        now,
        JSON.stringify(stageRows),
        eventId,
        JSON.stringify(event),
      ],
    ),
    tx.offer({
      tenantId: actor.tenantId,
      eventId,
      type: "workload.accepted",
      subject: { workload_id: id },
      payload: event,
      now,
    }),
    enqueue(tx, placeStage, { stageRunId: stageRows[0]!.id }, now),
    completeBy ? enqueue(tx, enforceDeadline, { workloadId: id }, now, completeBy) : null,
  ]);
  return instance(Workload, row!);
}

function stageRow({ draft, spec }: AcceptedStage, position: number, now: Date) {
  return {
    id: newId("stageRun", now),
    stage_id: draft.stageId,
    position,
    status: position === 0 ? "placing" : "pending",
    spec,
    continuity_mode: spec.continuityMode,
    total_units: draft.totalUnits,
  };
}

function acceptedEvent({ payload }: ValidWorkload, actor: Actor, spec: StageSpec) {
  return {
    status: "accepted",
    revision: 1,
    name: payload.name ?? "",
    max_cost_usd: payload.outcome.max_cost_usd ?? null,
    complete_by: payload.outcome.complete_by ?? null,
    owner_user_id: actor.memberId,
    network: spec.network.mode,
  };
}
