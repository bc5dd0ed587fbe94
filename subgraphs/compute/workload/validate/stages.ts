import type { StagePayload, WorkloadPayload } from "../workload.payload.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import { refuseStagePaths } from "./continuity.ts";
import { refuse } from "./refuse.ts";
import { checkSource, saysSomething } from "./source.ts";

/** The id of the one stage of a workload that names none. */
const ONLY_STAGE = "main";
/** What the framework runs, one after another, all with the same command. */
const FRAMEWORK_STAGES = ["prepare", "train", "eval"];

/** A stage and where it stands in the request: its own place, or the request itself for one that was derived. */
export interface PlannedStage {
  stage: StagePayload;
  field: string;
}

/** The stages that a workload amounts to: the framework's, its own, or the one that its source makes. */
export function planStages(given: WorkloadPayload): PlannedStage[] {
  if (given.framework) return frameworkStages(given);
  if (given.stages?.length) {
    if (saysSomething(given.source)) refuse(WORKLOAD.source_conflict, "/source");
    return given.stages.map((stage, index) => ({ stage: withSource(stage, index), field: `/stages/${index}` }));
  }
  if (!saysSomething(given.source)) refuse(WORKLOAD.missing_source, "/source");
  return [{ stage: { id: ONLY_STAGE, source: checkSource(given.source, "/source") }, field: "" }];
}

function withSource(stage: StagePayload, index: number): StagePayload {
  const field = `/stages/${index}/source`;
  if (!saysSomething(stage.source)) refuse(WORKLOAD.missing_source, field);
  return { ...stage, source: checkSource(stage.source, field) };
}

function frameworkStages(given: WorkloadPayload): PlannedStage[] {
  if (given.framework !== "train_eval")
    refuse(WORKLOAD.invalid_source, "/framework", "The only framework is train_eval.");
  refuseStagePaths(given.stages ?? []);
  if (!given.source?.command?.length)
    refuse(WORKLOAD.missing_source, "/source/command", "The framework runs source.command.");
  const source = checkSource(given.source, "/source");
  return FRAMEWORK_STAGES.map((id, index) => ({
    stage: { id, source, depends_on: index === 0 ? [] : [FRAMEWORK_STAGES[index - 1]!] },
    field: "",
  }));
}
