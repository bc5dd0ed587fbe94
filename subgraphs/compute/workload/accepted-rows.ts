import { selectList } from "../../../infra/db/columns.ts";
import type { OfferedEvent } from "../../../infra/db/offered-event.ts";
import { appendJobsFrom, type OutboxJob, outboxJob } from "../../../infra/db/outbox.ts";
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

export interface Accepted {
  id: string;
  workload: ValidWorkload;
  stages: readonly AcceptedStage[];
  now: Date;
}

/** Everything that an accepted workload consists of, as JSON: a member for each of `ACCEPTED_COLUMNS`. */
export interface AcceptedRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly owner_user_id: string | null;
  readonly key_id: string;
  readonly name: string;
  readonly payload: unknown;
  /** Decimal digits. */
  readonly max_cost_micros: string | null;
  readonly complete_by: Date | null;
  readonly accepted_at: Date;
  readonly event_id: string;
  readonly event: Readonly<Record<string, unknown>>;
  readonly stages: readonly unknown[];
  readonly jobs: readonly OutboxJob[];
}

/** For `jsonb_to_recordset`. */
export const ACCEPTED_COLUMNS = `id text, tenant_id text, owner_user_id text, key_id text, name text, payload jsonb,
  max_cost_micros bigint, complete_by timestamptz, accepted_at timestamptz, event_id text, event jsonb, stages jsonb,
  jobs jsonb`;

/** The first stage wants capacity at once; the first event has number 1, which the workload's row begins with. */
export function acceptedRow(actor: Actor, { id, workload, stages, now }: Accepted): AcceptedRow {
  const { payload, maxCostMicros, completeBy } = workload;
  const stageRows = stages.map((stage, position) => stageRow(stage, position, now));
  return {
    ...{ id, tenant_id: actor.tenantId, owner_user_id: actor.memberId, key_id: actor.keyId },
    ...{ name: payload.name ?? "", payload, complete_by: completeBy, accepted_at: now },
    max_cost_micros: maxCostMicros === null ? null : String(maxCostMicros),
    event_id: newId("event", now),
    event: acceptedEvent(workload, actor, stages[0]!.spec),
    stages: stageRows,
    jobs: [
      outboxJob(placeStage, { stageRunId: stageRows[0]!.id }, now),
      ...(completeBy ? [outboxJob(enforceDeadline, { workloadId: id }, now, completeBy)] : []),
    ],
  };
}

/**
 * SQL: common table expressions that write each row of `source`, which has `ACCEPTED_COLUMNS`, with its stages, its first
 * event and the jobs that go on with it; `accepted` answers the workloads. One statement, for admission is the busiest
 * command. Whoever runs it wakes `OUTBOX_TOPIC`.
 */
export function acceptFrom(source: string): string {
  return `accepted as (
      insert into compute.workload as t (id, tenant_id, owner_user_id, key_id, name, status, revision, payload,
        max_cost_micros, complete_by, spend_micros, held_micros, event_seq, log_seq, created_at, updated_at)
      select id, tenant_id, owner_user_id, key_id, name, 'accepted', 1, payload, max_cost_micros, complete_by, 0, 0, 1, 0,
        accepted_at, accepted_at
      from ${source} returning ${selectList(Workload)}),
    stages as (
      insert into compute.stage (id, tenant_id, workload_id, stage_id, position, status, spec, continuity_mode, generation,
        fence, completed_units, total_units, next_try_at, failed_offer_ids, recoveries, created_at)
      select s.id, w.tenant_id, w.id, s.stage_id, s.position, s.status, s.spec, s.continuity_mode, 0, 0, 0, s.total_units,
        w.accepted_at, '{}', 0, w.accepted_at
      from ${source} w, jsonb_to_recordset(w.stages) as s(id text, stage_id text, position int, status text, spec jsonb,
        continuity_mode text, total_units int)),
    events as (
      insert into compute.workload_event (id, tenant_id, workload_id, seq, type, payload, created_at)
      select event_id, tenant_id, id, 1, 'workload.accepted', event, accepted_at from ${source}),
    jobs as (${appendJobsFrom(source)})`;
}

/** What others are told of it. */
export function acceptedOffer(row: AcceptedRow): OfferedEvent {
  return {
    tenantId: row.tenant_id,
    eventId: row.event_id,
    type: "workload.accepted",
    subject: { workload_id: row.id },
    payload: row.event,
    now: row.accepted_at,
  };
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
