import { LIMITS } from "../../../../infra/kernel/limits.ts";
import type { StagePayload } from "../workload.payload.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import { isInputName, isPortableName, isStageId } from "./names.ts";
import { at, refuse } from "./refuse.ts";

/** Checks ids, edges and stage inputs, and gives the stages in the order in which they run. */
export function orderStages(stages: readonly StagePayload[], workloadInputs: ReadonlySet<string>): StagePayload[] {
  if (stages.length > LIMITS.workloadStages)
    refuse(WORKLOAD.invalid_stage_graph, "/stages", `There are more than ${LIMITS.workloadStages} stages.`);
  const byId = new Map<string, StagePayload>();
  stages.forEach((stage, index) => {
    const field = at(at("/stages", index), "id");
    if (!isStageId(stage.id))
      refuse(WORKLOAD.invalid_stage_graph, field, "A stage's id is 1 to 64 letters, digits, _, - or .");
    if (Object.keys(stage.outputs ?? {}).length > 0 && !isPortableName(stage.id))
      refuse(WORKLOAD.invalid_output, field, "A stage with outputs has an id that is a file name on every system.");
    if (byId.has(stage.id)) refuse(WORKLOAD.invalid_stage_graph, field, `Two stages have the id ${stage.id}.`);
    byId.set(stage.id, stage);
  });
  stages.forEach((stage, index) => {
    checkEdges(stage, byId, at("/stages", index));
    checkStageInputs(stage, workloadInputs, at("/stages", index));
  });
  return inOrder(stages, byId);
}

function checkEdges(stage: StagePayload, byId: ReadonlyMap<string, StagePayload>, field: string): void {
  (stage.depends_on ?? []).forEach((id, index) => {
    if (!byId.has(id))
      refuse(WORKLOAD.invalid_stage_graph, at(at(field, "depends_on"), index), `There is no stage ${id.slice(0, 64)}.`);
  });
}

function checkStageInputs(stage: StagePayload, workloadInputs: ReadonlySet<string>, field: string): void {
  const names = new Set(workloadInputs);
  (stage.inputs ?? []).forEach((input, index) => {
    const place = at(at(field, "inputs"), index);
    if (!isInputName(input.name))
      refuse(WORKLOAD.invalid_input, at(place, "name"), "A name is a letter and up to 63 letters, digits or _.");
    if (names.has(input.name))
      refuse(WORKLOAD.invalid_input, at(place, "name"), `Two inputs have the name ${input.name}.`);
    names.add(input.name);
    if (!stage.depends_on?.includes(input.from_stage))
      refuse(WORKLOAD.invalid_stage_graph, at(place, "from_stage"), "The stage is not among depends_on.");
    if (!input.from_output) refuse(WORKLOAD.invalid_input, at(place, "from_output"), "The input names no output.");
  });
}

/** Depth first in the order given, so that independent stages run as they were written. */
function inOrder(stages: readonly StagePayload[], byId: ReadonlyMap<string, StagePayload>): StagePayload[] {
  const done = new Set<string>();
  const ordered: StagePayload[] = [];
  const path: string[] = [];
  const visit = (stage: StagePayload) => {
    if (done.has(stage.id)) return;
    if (path.includes(stage.id)) {
      const circle = [...path.slice(path.indexOf(stage.id)), stage.id].join(" → ");
      refuse(WORKLOAD.invalid_stage_graph, "/stages", `The stages depend on each other in a circle: ${circle}.`);
    }
    path.push(stage.id);
    for (const id of stage.depends_on ?? []) visit(byId.get(id)!);
    path.pop();
    done.add(stage.id);
    ordered.push(stage);
  };
  stages.forEach(visit);
  return ordered;
}
