import { isId } from "../../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../../infra/kernel/limits.ts";
import { NOT_IN_RELEASE } from "../../../../infra/kernel/not-in-release.ts";
import type { WorkloadInput } from "../workload.payload.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import { isInputName } from "./names.ts";
import { at, refuse } from "./refuse.ts";

/** An input that has been checked: a name and the asset behind it. */
export interface ResolvedInput {
  name: string;
  assetId: string;
  field: string;
}

/** Checks the workload's inputs, each an asset under a name of its own. */
export function checkInputs(inputs: readonly WorkloadInput[]): ResolvedInput[] {
  // First of all: whoever mends a name or a shape should not learn of this only afterwards.
  const bucket = inputs.findIndex((input) => input.bucket !== undefined);
  if (bucket >= 0) refuse(NOT_IN_RELEASE.bucket_inputs_unsupported, at(at("/inputs", bucket), "bucket"));
  if (inputs.length > LIMITS.workloadInputs)
    refuse(WORKLOAD.invalid_input, "/inputs", `There are more than ${LIMITS.workloadInputs} inputs.`);
  const names = new Set<string>();
  return inputs.map((input, index) => {
    const field = at("/inputs", index);
    if (!isInputName(input.name))
      refuse(WORKLOAD.invalid_input, at(field, "name"), "A name is a letter and up to 63 letters, digits or _.");
    if (names.has(input.name))
      refuse(WORKLOAD.invalid_input, at(field, "name"), `Two inputs have the name ${input.name}.`);
    names.add(input.name);
    return { name: input.name, assetId: assetOf(input, field), field: at(field, "asset_id") };
  });
}

function assetOf(input: WorkloadInput, field: string): string {
  if (input.uri) refuse(WORKLOAD.input_uri_unsupported, at(field, "uri"));
  if (input.asset_id === undefined) refuse(WORKLOAD.invalid_input, field, "The input names no asset_id.");
  if (!isId("asset", input.asset_id)) refuse(WORKLOAD.invalid_input, at(field, "asset_id"), "This is no asset id.");
  return input.asset_id;
}
