import { instance, selectList } from "../../../infra/db/columns.ts";
import type { Database, Tx } from "../../../infra/db/database.ts";
import { once, requireKey } from "../../../infra/db/idempotency.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import type { Micros } from "../../../infra/kernel/micros.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { admit } from "../account/admission.ts";
import type { ComputeServices } from "../compute-context.ts";
import { enforceDeadline, placeStage } from "../jobs.ts";
import { chargeFor } from "../ledger/price.ts";
import { cheapestMatchingOffer } from "../offer/offer-market.ts";
import type { StageSpec } from "../stage/stage.entity.ts";
import { topics } from "../topics.ts";
import { checkCapacity, pinReferences } from "./references.ts";
import { type StageDraft, type ValidWorkload, validateWorkload } from "./validate/validate.ts";
import { Workload } from "./workload.entity.ts";
import type { WorkloadPayload } from "./workload.payload.ts";

export type WorkloadDeps = ComputeServices & { readonly db: Database };

/** What a caller sends: a request in wire spelling without members that mean nothing and without nulls. */
export interface WorkloadRequest {
  payload: Partial<WorkloadPayload>;
  /** Pointers of members that the request's text repeats; only `rl` minds. */
  repeatedMembers?: readonly string[];
}

export interface Submitted {
  workload: Workload;
  /** The key was used for the same request before: this is what that one made. */
  replayed: boolean;
}

/**
 * Accepts a workload: everything that is needed for it to start is written in one transaction, or nothing is. A repeated
 * key answers the first request's workload, whatever has become of its assets, limits or deadline since.
 */
export async function createWorkload(
  deps: WorkloadDeps,
  actor: Actor,
  input: WorkloadRequest & { idempotencyKey: string | null | undefined },
  now: Date,
): Promise<Submitted> {
  const { idempotencyKey: key } = input;
  requireKey(key);
  const id = newId("workload", now);
  const { tenantId } = actor;
  try {
    return await deps.db.command(async (tx) => {
      const keyed = { tenantId, operation: "createWorkload", key, payload: input.payload, now };
      const first = await once(tx, keyed, id);
      if (first.replayed) return { workload: await requireWorkload(tx, tenantId, first.objectId), replayed: true };
      const workload = judge(deps, input, now);
      return { workload: await accept(tx, deps, actor, { id, workload, now }), replayed: false };
    });
  } catch (error) {
    if (error instanceof Refused && error.cause)
      deps.logger.error({ err: error.cause, tenantId }, "an admission failed");
    throw error;
  }
}

/** Judges a request without looking at anything but itself and the settings. */
export function judge(deps: Pick<ComputeServices, "settings">, request: WorkloadRequest, now: Date): ValidWorkload {
  const given = { requirements: {}, outcome: {}, policy: {}, continuity: {}, ...request.payload };
  return validateWorkload(given, { ...deps.settings, now, repeatedMembers: request.repeatedMembers ?? [] });
}

interface Acceptance {
  id: string;
  workload: ValidWorkload;
  now: Date;
}

async function accept(tx: Tx, deps: WorkloadDeps, actor: Actor, acceptance: Acceptance): Promise<Workload> {
  const { id, workload, now } = acceptance;
  const { tenantId } = actor;
  await checkCapacity(tx, deps, { tenantId, workload, now });
  const stages = await pinReferences(tx, deps, { tenantId, workload, holderId: id, now });
  const estimateMicros = await estimate(tx, deps, tenantId, stages[0]!.spec, now);
  const row = await insertWorkload(tx, actor, acceptance);
  const firstStageRunId = await insertStages(tx, row, stages, now);
  await insertAcceptedEvent(tx, row, stages[0]!.spec);
  await enqueue(tx, placeStage, { stageRunId: firstStageRunId }, now);
  if (row.completeBy) await enqueue(tx, enforceDeadline, { workloadId: id }, now, row.completeBy);
  tx.wake(topics.workload(id));
  await admit(tx, { tenantId, estimateMicros, now });
  return row;
}

/** What the first window costs on the cheapest capacity that fits; zero when none does, and the workload will wait. */
async function estimate(tx: Tx, deps: WorkloadDeps, tenantId: string, spec: StageSpec, now: Date): Promise<Micros> {
  const { settings } = deps;
  const { cheapest } = await cheapestMatchingOffer(deps.market, tx, spec, {
    now,
    tenantId,
    cpuFallback: settings.cpuFallback,
    defaults: { cpuMillis: settings.defaultCpuMillis, memoryMb: settings.defaultMemoryMb },
  });
  if (!cheapest) return 0n;
  const price = {
    rateMicrosPerHour: cheapest.offer.rateMicrosPerHour,
    feeBasisPoints: settings.feeBasisPoints,
  };
  return chargeFor(price, settings.firstWindowMs).totalMicros;
}

async function insertWorkload(tx: Tx, actor: Actor, { id, workload, now }: Acceptance): Promise<Workload> {
  const { payload, maxCostMicros, completeBy } = workload;
  const [row] = await tx.sql<Record<string, unknown>>(
    `insert into compute.workload as t (id, tenant_id, owner_user_id, key_id, name, status, revision, payload,
       max_cost_micros, complete_by, spend_micros, held_micros, event_seq, log_seq, created_at, updated_at)
     values ($1, $2, $3, $4, $5, 'accepted', 1, $6, $7, $8, 0, 0, 1, 0, $9, $9) returning ${selectList(Workload)}`,
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
    ],
  );
  return instance(Workload, row!);
}

/** Writes all stages; the first one wants capacity at once. Returns its row id. */
async function insertStages(
  tx: Tx,
  workload: Workload,
  stages: readonly { draft: StageDraft; spec: StageSpec }[],
  now: Date,
): Promise<string> {
  const rows = stages.map(({ draft, spec }, position) => ({
    id: newId("stageRun", now),
    stage_id: draft.stageId,
    position,
    status: position === 0 ? "placing" : "pending",
    spec,
    continuity_mode: spec.continuityMode,
    total_units: draft.totalUnits,
  }));
  await tx.sql(
    `insert into compute.stage (id, tenant_id, workload_id, stage_id, position, status, spec, continuity_mode, generation,
       fence, completed_units, total_units, next_try_at, failed_offer_ids, recoveries, created_at)
     select s.id, $1, $2, s.stage_id, s.position, s.status, s.spec, s.continuity_mode, 0, 0, 0, s.total_units, $4, '{}', 0, $4
     from jsonb_to_recordset($3::jsonb) as s(id text, stage_id text, position int, status text, spec jsonb,
       continuity_mode text, total_units int)`,
    [workload.tenantId, workload.id, JSON.stringify(rows), now],
  );
  return rows[0]!.id;
}

/** The first event has number 1, which the row was written with. */
async function insertAcceptedEvent(tx: Tx, workload: Workload, spec: StageSpec): Promise<void> {
  const { outcome } = workload.payload;
  const payload = {
    status: workload.status,
    revision: workload.revision,
    name: workload.name,
    max_cost_usd: outcome.max_cost_usd ?? null,
    complete_by: outcome.complete_by ?? null,
    owner_user_id: workload.ownerUserId,
    network: spec.network.mode,
  };
  await tx.sql(
    `insert into compute.workload_event (id, tenant_id, workload_id, seq, type, payload, created_at)
     values ($1, $2, $3, 1, 'workload.accepted', $4, $5)`,
    [newId("event", workload.createdAt), workload.tenantId, workload.id, JSON.stringify(payload), workload.createdAt],
  );
}

async function requireWorkload(tx: Tx, tenantId: string, id: string): Promise<Workload> {
  const workload = await tx.row(Workload, "where t.tenant_id = $1 and t.id = $2", [tenantId, id]);
  if (!workload) throw new Error(`an idempotency key names the workload ${id}, which is not there`);
  return workload;
}
