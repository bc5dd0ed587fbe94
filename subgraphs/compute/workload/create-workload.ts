import { instance } from "../../../infra/db/columns.ts";
import type { Database, Tx } from "../../../infra/db/database.ts";
import { once, requireKey } from "../../../infra/db/idempotency.ts";
import { OUTBOX_TOPIC } from "../../../infra/db/outbox.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { admit, admitting } from "../account/admission.ts";
import { reportRefusedMoney } from "../account/report-refused-money.ts";
import type { ComputeServices } from "../compute-context.ts";
import { ACCEPTED_COLUMNS, acceptedOffer, acceptedRow, acceptFrom } from "./accepted-rows.ts";
import { admitInCompany } from "./admit-in-company.ts";
import { estimateStart } from "./estimate-start.ts";
import { judge, type WorkloadRequest } from "./judge.ts";
import { checkCapacity, pinReferences } from "./references.ts";
import { checkStorable } from "./validate/storable.ts";
import type { ValidWorkload } from "./validate/validate.ts";
import { Workload } from "./workload.entity.ts";

export type WorkloadDeps = ComputeServices & { readonly db: Database };

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
  const keyed = { tenantId, operation: "createWorkload", key, payload: input.payload, now };
  const joined = shortage ? null : await admitInCompany(deps, actor, { id, keyed, request: input });
  if (joined) return { workload: joined, replayed: false };
  try {
    return await admitting(deps.db, async (tx) => {
      const first = await once(tx, keyed, id);
      // Its own id: the joined admission was committed, and its answer was lost.
      if (first.replayed)
        return { workload: await requireWorkload(tx, tenantId, first.objectId), replayed: first.objectId !== id };
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
  const accepted = acceptedRow(actor, { ...acceptance, stages });
  // What does not wait for each other leaves in one write.
  const [estimateMicros, [row]] = await Promise.all([
    estimateStart(tx, deps, { tenantId, spec: stages[0]!.spec, now }),
    tx.sql<Record<string, unknown>>(ACCEPT_ONE, [JSON.stringify([accepted])]),
    tx.offer(acceptedOffer(accepted)),
  ]);
  tx.wake(OUTBOX_TOPIC);
  await admit(tx, { tenantId, estimateMicros, maxCostMicros: workload.maxCostMicros, now });
  return instance(Workload, row!);
}

const ACCEPT_ONE = `with asked as (select * from jsonb_to_recordset($1::jsonb) as r(${ACCEPTED_COLUMNS})),
  ${acceptFrom("asked")}
  select * from accepted`;

async function requireWorkload(tx: Tx, tenantId: string, id: string): Promise<Workload> {
  const workload = await tx.row(Workload, "where t.tenant_id = $1 and t.id = $2", [tenantId, id]);
  if (!workload) throw new Error(`an idempotency key names the workload ${id}, which is not there`);
  return workload;
}
