import type { ComputeServices } from "../compute-context.ts";
import { type ValidWorkload, validateWorkload } from "./validate/validate.ts";
import type { WorkloadPayload } from "./workload.payload.ts";

/** What a caller sends: a request in wire spelling without members that mean nothing and without nulls. */
export interface WorkloadRequest {
  payload: Partial<WorkloadPayload>;
  /** Pointers of members that the request's text repeats; only `rl` minds. */
  repeatedMembers?: readonly string[];
}

/** Judges a request without looking at anything but itself and the settings. */
export function judge(deps: Pick<ComputeServices, "settings">, request: WorkloadRequest, now: Date): ValidWorkload {
  const given = { requirements: {}, outcome: {}, policy: {}, continuity: {}, ...request.payload };
  return validateWorkload(given, { ...deps.settings, now, repeatedMembers: request.repeatedMembers ?? [] });
}
