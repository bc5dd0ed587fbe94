import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, object } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";
import type { NetworkPolicy } from "../../../infra/runner/protocol.ts";
import { STAGE_STATES, type StageState } from "./stage.machine.ts";

const STAGE_STATUS = closed("StageStatus", "Where a stage is.", STAGE_STATES);

/** What a stage resolved to at admission: the payload's stage over the workload's values, references pinned. */
export interface StageSpec {
  image: string;
  command: string[];
  sourceAsset: PinnedAssetSpec | null;
  inputs: { name: string; asset: PinnedAssetSpec }[];
  /** Output name to relative path; null for the default archives. */
  outputs: Record<string, string> | null;
  computeClass: "vm" | "accelerator";
  /** The class was asked for by nobody: the CPU may stand in where the deployment allows it. */
  computeClassDefaulted: boolean;
  /** Canonical family; null when any accelerator will do. */
  gpu: string | null;
  gpuCount: number;
  deviceMemoryGb: number;
  vcpus: number;
  diskGb: number;
  regions: string[];
  placement: { kind: "any" } | { kind: "market" } | { kind: "pool"; poolId: string };
  continuityMode: "checkpointed" | "restartable" | "ephemeral";
  resumeOnInterruption: boolean;
  checkpointPaths: string[];
  network: NetworkPolicy;
  /** Environment variable name to the name under which its value is kept for the workload. */
  secretEnv: Record<string, string>;
  /** Plain environment of the command; absent in stages of earlier releases. */
  env?: Record<string, string>;
  /** Output name to the table that it is loaded into; absent where no output has one. */
  sinks?: Record<string, SinkSpec>;
  /** Secrets, a live connection or egress rules: only offers that isolate will do. */
  needsIsolation: boolean;
}

/** Where an output goes once its stage is done, with the credential that was pinned at admission. */
export interface SinkSpec {
  connectionId: string;
  table: string;
  secretId: string;
  secretVersion: number;
}

export interface PinnedAssetSpec {
  assetId: string;
  sha256: string;
  bytes: number;
  format: "tar" | "file";
  name: string;
}

/** One step of a workload. */
@object("compute", "stage", "One step of a workload.")
@Index({
  name: "stage_by_workload",
  expression: `create unique index stage_by_workload on compute.stage (workload_id, stage_id)`,
})
@Index({
  name: "stage_to_place",
  expression: `create index stage_to_place on compute.stage (next_try_at) where status = 'placing'`,
})
@Index({
  name: "stage_in_order",
  expression: `create index stage_in_order on compute.stage (tenant_id, created_at, next_try_at, id) where status = 'placing'`,
})
export class Stage {
  /** Row id; `stageId` is what people call it. */
  @column.id() id!: string;
  @column.text() tenantId!: string;
  @attr.ref("The workload.") workloadId!: string;
  @attr.text("The stage's id in the payload, such as `main`.") stageId!: string;
  @attr.int("Its place in the order of execution, from 0.") position!: number;
  @attr.oneOf(STAGE_STATUS, "Where it is.") status!: StageState;
  @column.document<StageSpec>() spec!: StageSpec;
  @attr.text("Continuity mode in force.") continuityMode!: string;
  @attr.int("Number of its latest generation; 0 before the first placement.") generation!: number;
  /** Rises with every claim; writers that hold an older one are stale. */
  @column.int() fence!: number;
  @attr.int("Unique work units that it reported done.") completedUnits!: number;
  @attr.int("Work units in all; 0 when not declared.") totalUnits!: number;
  @attr.float("Latest loss that its log reported.", { nullable: true }) lastLoss!: number | null;
  @attr.float("Latest rate that its log reported.", { nullable: true }) metricRate!: number | null;
  @attr.int("Latest step that its log reported.", { nullable: true }) metricStep!: number | null;
  @attr.text("Why it ended as it did; null otherwise.", { nullable: true }) reason!: string | null;
  @attr.int("Exit code of its command; null when unknown or none ran.", { nullable: true }) exitCode!: number | null;
  @attr.text("Signal that ended its command.", { nullable: true }) signal!: string | null;
  /** When placement looks at it next; only meaningful while placing. */
  @column.at() nextTryAt!: Date;
  /** When somebody last looked for capacity for it; orders tenants fairly. */
  @column.at({ nullable: true }) lastTriedAt!: Date | null;
  /** Offers that did not boot for this generation, never tried again for it while others are left. */
  @column.texts() failedOfferIds!: string[];
  /** Recoveries used. */
  @column.int() recoveries!: number;
  @attr.at("When its command first ran.", { nullable: true }) startedAt!: Date | null;
  @attr.at("When it ended.", { nullable: true }) endedAt!: Date | null;
  @column.at() createdAt!: Date;
}
