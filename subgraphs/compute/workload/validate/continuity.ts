import { LIMITS } from "../../../../infra/kernel/limits.ts";
import { COMMON } from "../../../../infra/kernel/refusal.ts";
import type { Continuity } from "../workload.payload.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import { checkpointPathFault } from "./paths.ts";
import { at, type Pointer, refuse, spoken } from "./refuse.ts";

const MODES = ["checkpointed", "restartable", "ephemeral"] as const;
export type ContinuityMode = (typeof MODES)[number];

/** Files below this folder are saved unless a workload chooses; the runner names it to the command. */
const DEFAULT_PATHS = ["state"];

/** What happens to a stage's work when its machine is lost. */
export interface ResolvedContinuity {
  mode: ContinuityMode;
  resumeOnInterruption: boolean;
  checkpointPaths: string[];
  /** `none` unless somebody asked for a managed one. */
  integration: "none" | "auto" | "hf-trainer-v1";
}

/** Checks each member of a continuity by itself. */
export function checkContinuity(given: Continuity, field: Pointer): void {
  const { mode, checkpoint_paths: paths, integration } = given;
  if (mode !== undefined && mode !== "" && !(MODES as readonly string[]).includes(mode))
    refuse(WORKLOAD.invalid_continuity_mode, at(field, "mode"), `${mode} is no continuity mode.`);
  if (integration !== undefined && !["", "none", "auto", "hf-trainer-v1"].includes(integration))
    refuse(WORKLOAD.invalid_integration, at(field, "integration"), `${integration} is no integration.`);
  if (paths === undefined) return;
  const list = at(field, "checkpoint_paths");
  if (paths.length > LIMITS.checkpointPaths)
    refuse(WORKLOAD.invalid_checkpoint_path, list, `There are more than ${LIMITS.checkpointPaths} checkpoint paths.`);
  paths.forEach((path, index) => {
    const fault = checkpointPathFault(path);
    if (fault) refuse(WORKLOAD.invalid_checkpoint_path, at(list, index), `${spoken(at(list, index))} ${fault}.`);
  });
}

/** The workload's continuity with its defaults. */
export function defaultContinuity(given: Continuity): ResolvedContinuity {
  return {
    mode: given.mode || "checkpointed",
    resumeOnInterruption: given.resume_on_interruption ?? true,
    checkpointPaths: given.checkpoint_paths?.length ? given.checkpoint_paths : DEFAULT_PATHS,
    integration: given.integration || "none",
  };
}

/** A stage's continuity: mode and resumption come together, paths and integration each by themselves. */
export function resolveContinuity(workload: ResolvedContinuity, stage: Continuity): ResolvedContinuity {
  return {
    ...(stage.mode
      ? { mode: stage.mode, resumeOnInterruption: stage.resume_on_interruption ?? true }
      : { mode: workload.mode, resumeOnInterruption: workload.resumeOnInterruption }),
    checkpointPaths: stage.checkpoint_paths?.length ? stage.checkpoint_paths : workload.checkpointPaths,
    integration: stage.integration || workload.integration,
  };
}

/** A managed integration needs something to prepare and somewhere to save; then it needs a deployment that prepares. */
export function checkIntegration(continuity: ResolvedContinuity, hasAsset: boolean, field: Pointer): void {
  if (continuity.integration === "none") return;
  const place = at(field, "integration");
  const saves = continuity.checkpointPaths.some((path) => path === "." || path === "state");
  if (continuity.mode !== "checkpointed" || !saves || !hasAsset) refuse(WORKLOAD.invalid_integration, place);
  refuse(WORKLOAD.preparation_unavailable, place);
}

/** The framework makes its stages' paths from the workload's; stage paths beside it have no stage to belong to. */
export function refuseStagePaths(stages: readonly { continuity?: Continuity }[]): void {
  stages.forEach((stage, index) => {
    if (stage.continuity?.checkpoint_paths?.length)
      refuse(
        WORKLOAD.invalid_checkpoint_path,
        `/stages/${index}/continuity/checkpoint_paths`,
        "A framework's stages take the workload's checkpoint paths; give these there.",
      );
  });
}

/** Total units are a whole number, zero or more. */
export function checkTotalUnits(units: number | undefined, field: Pointer): void {
  if (units !== undefined && !(Number.isSafeInteger(units) && units >= 0))
    refuse(COMMON.invalid_request, field, `${spoken(field)} must be a whole number, zero or more.`);
}
