import type { Database, Tx } from "../../../infra/db/database.ts";
import { once, requireKey } from "../../../infra/db/idempotency.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import type { Micros } from "../../../infra/kernel/micros.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { admit, admitting } from "../account/admission.ts";
import { reportRefusedMoney } from "../account/report-refused-money.ts";
import type { ComputeServices } from "../compute-context.ts";
import { microsFor } from "../ledger/price.ts";
import { cheapestMatchingOffer } from "../offer/offer-market.ts";
import type { StageSpec } from "../stage/stage.entity.ts";
import { topics } from "../topics.ts";
import { insertAccepted } from "./accepted-rows.ts";
import { checkCapacity, pinReferences } from "./references.ts";
import { checkStorable } from "./validate/storable.ts";
import { type ValidWorkload, validateWorkload } from "./validate/validate.ts";
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
  checkStorable(input.payload);
  const id = newId("workload", now);
  const { tenantId } = actor;
  const shortage = await deps.space.shortage();
  try {
    return await admitting(deps.db, async (tx) => {
      const keyed = { tenantId, operation: "createWorkload", key, payload: input.payload, now };
      const first = await once(tx, keyed, id);
      if (first.replayed) return { workload: await requireWorkload(tx, tenantId, first.objectId), replayed: true };
      if (shortage) throw storageFull(shortage);
      const workload = judge(deps, input, now);
      return { workload: await accept(tx, deps, actor, { id, workload, now }), replayed: false };
    });
  } catch (error) {
    if (error instanceof Refused) await afterRefusal(deps, tenantId, error, now);
    throw error;
  }
}

/** The refusal stands, whatever becomes of telling others about it. */
async function afterRefusal(deps: WorkloadDeps, tenantId: string, refused: Refused, now: Date): Promise<void> {
  if (refused.cause) deps.logger.error({ err: refused.cause, tenantId }, "an admission failed");
  await reportRefusedMoney(deps.db, tenantId, refused, now).catch((err: unknown) =>
    deps.logger.error({ err, tenantId }, "a refusal for want of money was not recorded"),
  );
}

/** Judges a request without looking at anything but itself and the settings. */
export function judge(deps: Pick<ComputeServices, "settings">, request: WorkloadRequest, now: Date): ValidWorkload {
  const given = { requirements: {}, outcome: {}, policy: {}, continuity: {}, ...request.payload };
  return validateWorkload(given, { ...deps.settings, now, repeatedMembers: request.repeatedMembers ?? [] });
}

/** It passes: what runs ends, retention and operators make room. */
function storageFull(message: string): Refused {
  return new Refused(COMMON.unavailable, {
    message,
    fix: "Repeat the request with the same key later; what runs already goes on.",
    extra: { reason: "storage_full" },
    retryAfterSeconds: 30,
  });
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
  // What does not wait for each other leaves in one write.
  const [estimateMicros, row] = await Promise.all([
    estimate(tx, deps, tenantId, stages[0]!.spec, now),
    insertAccepted(tx, actor, { ...acceptance, stages }),
  ]);
  tx.wake(topics.workload(id));
  await admit(tx, { tenantId, estimateMicros, maxCostMicros: row.maxCostMicros, now });
  return row;
}

/** What has to be held for the first window on the cheapest capacity that fits; zero when none does, and the workload will wait. */
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
  return microsFor(price, settings.firstWindowMs);
}

async function requireWorkload(tx: Tx, tenantId: string, id: string): Promise<Workload> {
  const workload = await tx.row(Workload, "where t.tenant_id = $1 and t.id = $2", [tenantId, id]);
  if (!workload) throw new Error(`an idempotency key names the workload ${id}, which is not there`);
  return workload;
}
