import { LIMITS } from "../../../../infra/kernel/limits.ts";
import type { Micros } from "../../../../infra/kernel/micros.ts";
import { COMMON } from "../../../../infra/kernel/refusal.ts";
import type { StageSpec } from "../../stage/stage.entity.ts";
import type { StagePayload, WorkloadPayload } from "../workload.payload.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import {
  checkContinuity,
  checkIntegration,
  checkTotalUnits,
  defaultContinuity,
  type ResolvedContinuity,
  resolveContinuity,
} from "./continuity.ts";
import { checkInputs, type ResolvedInput } from "./inputs.ts";
import { checkOutcome } from "./outcome.ts";
import { checkOutputs, type SinkDraft } from "./outputs.ts";
import { checkPlacement } from "./placement.ts";
import { checkPolicy, type NetworkSettings, needsIsolation, networkOf } from "./policy.ts";
import { at, refuse } from "./refuse.ts";
import { checkOptimization, checkRequirements, resolveRequirements } from "./requirements.ts";
import { checkRl } from "./rl.ts";
import { orderStages } from "./stage-graph.ts";
import { type PlannedStage, planStages } from "./stages.ts";
import { hasControl } from "./text.ts";

/** A stage's specification before its assets are pinned. */
export interface StageDraft {
  stageId: string;
  totalUnits: number;
  /** The source asset and where the request names it. */
  sourceAsset: { assetId: string; field: string } | null;
  /** Tables that its outputs are loaded into. */
  sinks: SinkDraft[];
  spec: Omit<StageSpec, "sourceAsset" | "inputs" | "secretEnv" | "env" | "sinks">;
}

/** A workload that may be admitted, once its references are found to exist. */
export interface ValidWorkload {
  /** In wire spelling, with defaults filled in. */
  payload: WorkloadPayload;
  maxCostMicros: Micros | null;
  completeBy: Date | null;
  inputs: ResolvedInput[];
  /** Names or ids. */
  secretRefs: string[];
  /** Name or id of the connection whose credential runs are given; null for none. */
  liveConnection: string | null;
  needsIsolation: boolean;
  /** In the order in which they run. */
  stages: StageDraft[];
}

export interface ValidationSettings extends NetworkSettings {
  now: Date;
  /** Pointers of members that the request's text repeats; only `rl` minds. */
  repeatedMembers?: readonly string[];
}

/**
 * Judges a request in wire spelling whose members have the right JSON types. Pure: whether assets, secrets, pools and
 * money exist is asked elsewhere. Throws a refusal that names the field.
 */
export function validateWorkload(given: WorkloadPayload, settings: ValidationSettings): ValidWorkload {
  checkNames(given);
  const planned = planStages(given);
  const requirements = checkRequirements(given.requirements, "/requirements");
  checkOptimization(given.optimization, "/optimization");
  checkContinuity(given.continuity, "/continuity");
  const continuity = defaultContinuity(given.continuity);
  const outcome = checkOutcome(given.outcome, settings.now);
  const policy = checkPolicy(given.policy);
  const inputs = checkInputs(given.inputs ?? []);
  const placement = checkPlacement(given.placement);
  const rl = given.rl === undefined || given.rl === null ? null : checkRl(given.rl, settings.repeatedMembers ?? []);
  const ordered = inRunningOrder(planned, new Set(inputs.map((input) => input.name)));
  const drafts = ordered.map((plan) => {
    const carried = { policy, connections: given.connections ?? [] };
    const network = networkOf(carried, settings);
    const common = { placement, network, needsIsolation: needsIsolation(carried) };
    return { ...plan, draft: draftStage(plan, { ...given, requirements, policy }, continuity, common) };
  });
  if (drafts.length > 1) refuse(WORKLOAD.stages_unsupported, given.framework ? "/framework" : "/stages");
  return {
    payload: withDefaults(given, { requirements, outcome: outcome.payload, policy, continuity, rl }, planned),
    maxCostMicros: outcome.maxCostMicros,
    completeBy: outcome.completeBy,
    inputs,
    secretRefs: policy.secret_refs ?? [],
    liveConnection: given.connections?.[0] ?? null,
    needsIsolation: needsIsolation({ policy, connections: given.connections ?? [] }),
    stages: drafts.map(({ draft }) => draft),
  };
}

function checkNames({ name, sweep_id: sweepId, connections }: WorkloadPayload): void {
  if (name !== undefined && ([...name].length > LIMITS.workloadNameLength || hasControl(name) || !name.isWellFormed()))
    refuse(COMMON.invalid_request, "/name", `A name is at most ${LIMITS.workloadNameLength} printable characters.`);
  if (sweepId !== undefined && !/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/.test(sweepId))
    refuse(COMMON.invalid_request, "/sweep_id", "sweep_id is 1 to 128 letters, digits, _, . or -.");
  if ((connections?.length ?? 0) > 1) refuse(WORKLOAD.invalid_connection, "/connections");
  connections?.forEach((connection, index) => {
    if (!/^[A-Za-z][A-Za-z0-9_-]{0,127}$/.test(connection))
      refuse(WORKLOAD.invalid_connection, at("/connections", index));
  });
}

function inRunningOrder(planned: readonly PlannedStage[], inputNames: ReadonlySet<string>): PlannedStage[] {
  const ordered = orderStages(
    planned.map((p) => p.stage),
    inputNames,
  );
  return ordered.map((stage) => planned.find((p) => p.stage === stage)!);
}

type Common = Pick<StageSpec, "placement" | "network" | "needsIsolation">;

function draftStage(
  { stage, field }: PlannedStage,
  workload: WorkloadPayload,
  workloadContinuity: ResolvedContinuity,
  common: Common,
): StageDraft {
  const own = checkRequirements(stage.requirements ?? {}, at(field, "requirements"));
  const needs = resolveRequirements(workload.requirements, own, at(field, "requirements"));
  checkContinuity(stage.continuity ?? {}, at(field, "continuity"));
  const continuity = resolveContinuity(workloadContinuity, stage.continuity ?? {});
  checkIntegration(continuity, Boolean(stage.source.asset_id), at(field, "continuity"));
  checkTotalUnits(stage.total_units, at(field, "total_units"));
  const outputs = checkOutputs(stage.outputs, at(field, "outputs"));
  return {
    stageId: stage.id,
    totalUnits: stage.total_units ?? 0,
    sourceAsset: stage.source.asset_id
      ? { assetId: stage.source.asset_id, field: at(at(field, "source"), "asset_id") }
      : null,
    sinks: outputs.sinks,
    spec: {
      image: stage.source.image!,
      command: stage.source.command ?? [],
      outputs: outputs.paths,
      ...needs,
      regions: workload.policy.data_regions ?? [],
      continuityMode: continuity.mode,
      // An ephemeral run may be lost: nothing of it is worth doing again by itself.
      resumeOnInterruption: continuity.resumeOnInterruption && continuity.mode !== "ephemeral",
      checkpointPaths: continuity.checkpointPaths,
      ...common,
    },
  };
}

interface Checked {
  requirements: WorkloadPayload["requirements"];
  outcome: WorkloadPayload["outcome"];
  policy: WorkloadPayload["policy"];
  continuity: ResolvedContinuity;
  rl: Record<string, unknown> | null;
}

/** The request as it is answered from now on. */
function withDefaults(given: WorkloadPayload, checked: Checked, planned: readonly PlannedStage[]): WorkloadPayload {
  const { continuity, rl } = checked;
  const ownStages = !given.framework && given.stages?.length ? planned.map((p): StagePayload => p.stage) : null;
  return {
    ...given,
    ...(ownStages ? { stages: ownStages } : { source: planned[0]!.stage.source }),
    requirements: {
      ...checked.requirements,
      compute_class: checked.requirements.compute_class || "accelerator",
      ...(checked.requirements.compute_class === "vm" ? {} : { gpu_count: checked.requirements.gpu_count ?? 1 }),
    },
    outcome: checked.outcome,
    policy: checked.policy,
    continuity: {
      mode: continuity.mode,
      resume_on_interruption: continuity.resumeOnInterruption,
      checkpoint_paths: continuity.checkpointPaths,
      ...(continuity.integration === "none" ? {} : { integration: continuity.integration }),
    },
    ...(rl ? { rl } : {}),
  };
}
