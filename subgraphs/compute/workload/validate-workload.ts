import type { Actor } from "../../../infra/kernel/actor.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { WorkloadDeps } from "./create-workload.ts";
import { judge, type WorkloadRequest } from "./judge.ts";
import { checkReferences } from "./references.ts";
import { checkStorable } from "./validate/storable.ts";
import type { WorkloadPayload } from "./workload.payload.ts";
import { WORKLOAD } from "./workload.refusals.ts";

/** A request that was judged and not submitted. */
export interface Judged {
  /** In wire spelling, as it would be accepted. */
  workload: WorkloadPayload;
  message: string;
}

/** Refuses what admission would refuse for the request's own sake, reserves nothing, and asks for a spending limit. */
export async function validateOnly(
  deps: WorkloadDeps,
  actor: Actor,
  request: WorkloadRequest,
  now: Date,
): Promise<Judged> {
  checkStorable(request.payload);
  if (request.payload.outcome?.max_cost_usd === undefined)
    throw new Refused(WORKLOAD.max_cost_required, { field: "/outcome/max_cost_usd" });
  const workload = judge(deps, request, now);
  await checkReferences(deps.db, deps, { tenantId: actor.tenantId, workload, now });
  return {
    workload: workload.payload,
    message: "The request is valid and was not submitted. Limits and capacity are looked at when it is.",
  };
}
