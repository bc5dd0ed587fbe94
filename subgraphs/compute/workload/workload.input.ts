import { Field, Float, ID, InputType, Int } from "type-graphql";
import { Json, SafeInt } from "../../../infra/graphql/scalars.ts";
import type { WorkloadPayload } from "./workload.payload.ts";

/**
 * The request in the graph's spelling. Words whose refusal has a code of its own (compute class, continuity mode) are
 * strings and not enums, so that every face refuses them with the same code. The REST face recases by these types.
 */
const optional = (description: string) => ({ description, nullable: true }) as const;

@InputType({ description: "What a stage runs." })
export class SourceInput {
  @Field(() => String, optional("Container image that holds the program; `python:3.11-slim` unless given."))
  image?: string | null;
  @Field(() => [String], optional("The command as an argument vector. No shell reads it unless it names one."))
  command?: string[] | null;
  @Field(() => String, optional("An asset with the program's files; it becomes the working directory."))
  assetId?: string | null;
}

@InputType({ description: "An object in a bucket. Not part of this release: refused with what to do instead." })
export class BucketInput {
  @Field(() => String, { description: "Place of the object: an s3:// or gs:// address." }) uri!: string;
  @Field(() => String, { description: "The bucket's region." }) region!: string;
  @Field(() => SafeInt, { description: "Size of the object in bytes." }) bytes!: number;
  @Field(() => String, { description: "SHA-256 of the object in hex." }) sha256!: string;
  @Field(() => String, { description: "Where temporary credentials come from: `team_webhook`." })
  credentialSource!: string;
}

@InputType({ description: "Data that is unpacked before the command starts." })
export class WorkloadInputInput {
  @Field(() => String, { description: "A name of its own; `NODUS_INPUT_<name>` tells the command the folder." })
  name!: string;
  @Field(() => String, optional("The asset with the data.")) assetId?: string | null;
  @Field(() => String, optional("Only for old clients, and only empty: import the data as an asset."))
  uri?: string | null;
  @Field(() => Boolean, optional("Keep a copy near where the workload runs, for the next one.")) cache?: boolean | null;
  @Field(() => BucketInput, optional("Instead of an asset: an object in a bucket.")) bucket?: BucketInput | null;
}

@InputType({
  description: "The machine that is needed. Whatever is left out does not matter, or comes from the workload.",
})
export class RequirementsInput {
  @Field(() => String, optional("`accelerator`, which is the default, or `vm` for a machine without GPU."))
  computeClass?: string | null;
  @Field(() => String, optional("GPU family such as `H100` or `RTX 4090`; another one never stands in for it."))
  gpu?: string | null;
  @Field(() => Int, optional("How many GPUs of one machine: 1, 2, 4 or 8.")) gpuCount?: number | null;
  @Field(() => String, optional("Only `any`: how GPUs are connected cannot be promised.")) gpuInterconnect?:
    | string
    | null;
  @Field(() => Float, optional("Memory of each GPU in GB; of the host for the class vm.")) peakMemoryGb?: number | null;
  @Field(() => Float, optional("CPU cores.")) vcpus?: number | null;
  @Field(() => Float, optional("Disk in GB.")) diskGb?: number | null;
  @Field(() => String, optional("Name of the model; a hint.")) model?: string | null;
  @Field(() => String, optional("Anything that people should know; a hint.")) notes?: string | null;
  @Field(() => SafeInt, optional("Size of the data in bytes; a hint.")) datasetBytes?: number | null;
  @Field(() => Float, optional("Accepted from old clients, without effect.")) expectedRuntimeHours?: number | null;
  @Field(() => String, optional("Accepted from old clients, without effect.")) optimization?: string | null;
}

@InputType({ description: "Limits on money and time." })
export class OutcomeInput {
  @Field(
    () => Float,
    optional(
      "Most that the workload may cost, in US dollars; fractions of a micro-dollar are cut off. No limit unless given.",
    ),
  )
  maxCostUsd?: number | null;
  @Field(() => String, optional("RFC 3339 time at which the workload fails if it is not done; none when empty."))
  completeBy?: string | null;
}

@InputType({ description: "Where the workload may run and what it may reach." })
export class PolicyInput {
  @Field(() => [String], optional("Regions that it may run in; any unless given.")) dataRegions?: string[] | null;
  @Field(() => [String], optional("Names of secrets; each arrives as `NODUS_SECRET_<name>` at its version of now."))
  secretRefs?: string[] | null;
  @Field(() => [String], optional("Host names that may be reached over HTTPS; nothing else may be once one is given."))
  egressAllow?: string[] | null;
}

@InputType({ description: "What happens when the machine is lost." })
export class ContinuityInput {
  @Field(() => String, optional("`checkpointed`, which is the default, `restartable` or `ephemeral`."))
  mode?: string | null;
  @Field(() => Boolean, optional("Start again on another machine; true unless given.")) resumeOnInterruption?:
    | boolean
    | null;
  @Field(() => [String], optional("Paths in the working directory that are saved; `state` unless given."))
  checkpointPaths?: string[] | null;
  @Field(() => String, optional("`auto` or `hf-trainer-v1` where sources are prepared; `none` unless given."))
  integration?: string | null;
}

@InputType({ description: "A stage's input: an output of an earlier stage." })
export class StageInputInput {
  @Field(() => String, { description: "A name of its own within the stage." }) name!: string;
  @Field(() => String, { description: "The stage that makes it; one of `dependsOn`." }) fromStage!: string;
  @Field(() => String, { description: "Name of that stage's output." }) fromOutput!: string;
}

@InputType({ description: "One step of a workload. Whatever it leaves out comes from the workload." })
export class StageInput {
  @Field(() => String, { description: "A name of its own; `NODUS_STAGE_ID` tells it to the command." }) id!: string;
  @Field(() => SourceInput, { description: "What it runs." }) source!: SourceInput;
  @Field(() => [StageInputInput], optional("Outputs of earlier stages.")) inputs?: StageInputInput[] | null;
  @Field(() => ContinuityInput, optional("What happens when its machine is lost.")) continuity?: ContinuityInput | null;
  @Field(() => RequirementsInput, optional("The machine that it needs.")) requirements?: RequirementsInput | null;
  @Field(() => [String], optional("Stages that must be done first.")) dependsOn?: string[] | null;
  @Field(() => Int, optional("Work units in all, for progress.")) totalUnits?: number | null;
  @Field(
    () => Json,
    optional(
      "Named results: an object from name to relative path. None: non-empty `outputs` and `results` are archived.",
    ),
  )
  outputs?: unknown;
}

@InputType({ description: "Where the workload is placed. Give one of the two, or leave the placement out." })
export class PlacementInput {
  @Field(() => String, optional("Id of a pool of your team; only its hosts are used.")) pool?: string | null;
  @Field(() => String, optional("`any`: skip pools and use market capacity.")) prefer?: string | null;
}

@InputType({ description: "A batch job. It needs a source, stages, or the framework with a source." })
export class WorkloadSpecInput {
  @Field(() => String, optional("Display name, at most 120 characters.")) name?: string | null;
  @Field(() => SourceInput, optional("What runs, for a workload of one stage.")) source?: SourceInput | null;
  @Field(() => String, optional("`train_eval`: prepare, train and eval, each with the source's command."))
  framework?: string | null;
  @Field(() => [StageInput], optional("Steps that run one after another. Only one in this release."))
  stages?: StageInput[] | null;
  @Field(() => [WorkloadInputInput], optional("At most eight datasets.")) inputs?: WorkloadInputInput[] | null;
  @Field(() => RequirementsInput, optional("The machine that is needed.")) requirements?: RequirementsInput | null;
  @Field(() => OutcomeInput, optional("Limits on money and time.")) outcome?: OutcomeInput | null;
  @Field(() => PolicyInput, optional("Where it may run and what it may reach.")) policy?: PolicyInput | null;
  @Field(() => ContinuityInput, optional("What happens when the machine is lost.")) continuity?: ContinuityInput | null;
  @Field(() => PlacementInput, optional("Where it is placed; private capacity first unless given."))
  placement?: PlacementInput | null;
  @Field(() => [String], optional("One live connection by name or id.")) connections?: string[] | null;
  @Field(() => String, optional("Name under which runs are grouped; schedules nothing.")) sweepId?: string | null;
  @Field(() => String, optional("Accepted from old clients, without effect.")) optimization?: string | null;
  @Field(() => Json, optional("An RL experiment that the command belongs to, in wire spelling and strictly checked."))
  rl?: unknown;
}

@InputType({ description: "A workload to submit." })
export class CreateWorkloadInput {
  @Field(() => WorkloadSpecInput, { description: "The workload." }) workload!: WorkloadSpecInput;
  @Field(() => String, {
    description: "1 to 256 printable characters without spaces, one key for each workload that is meant.",
  })
  idempotencyKey!: string;
}

@InputType({ description: "A workload to look at without submitting it." })
export class ValidateWorkloadInput {
  @Field(() => WorkloadSpecInput, { description: "The workload; it needs a spending limit." })
  workload!: WorkloadSpecInput;
}

@InputType({ description: "The workload to cancel." })
export class CancelWorkloadInput {
  @Field(() => ID, { description: "The workload's id." }) id!: string;
}

/** Members whose value is the customer's own: passed on as it came. */
const VERBATIM = new Set(["outputs", "rl"]);

/** The request in wire spelling: what was left out or null is not there. */
export function wireRequest(input: WorkloadSpecInput): Partial<WorkloadPayload> {
  return wire(input) as Partial<WorkloadPayload>;
}

function wire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(wire);
  if (value === null || typeof value !== "object") return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined && member !== null);
  return Object.fromEntries(members.map(([name, member]) => [snake(name), VERBATIM.has(name) ? member : wire(member)]));
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
