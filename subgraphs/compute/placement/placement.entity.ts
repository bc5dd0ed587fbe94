import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, document, entity, table } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";
import {
  type ExitRecord,
  type IsolationReport,
  KILLERS,
  type KilledBy,
  WANTS,
  type Want,
} from "../../../infra/runner/protocol.ts";
import { ATTEMPT_STATES, type AttemptState, PLACEMENT_STATES, type PlacementState } from "./placement.machine.ts";

const PLACEMENT_STATUS = closed("PlacementStatus", "Where a placement is.", PLACEMENT_STATES);
const KILLED_BY = closed("KilledBy", "What ended a guest before its command did.", KILLERS);
const ATTEMPT_STATUS = closed("AttemptStatus", "Where one order to a supplier is.", ATTEMPT_STATES);

/** Why an offer was passed over, and how many for that reason. */
export interface RejectedOffers {
  counts: Record<string, number>;
  /** At most LIMITS.rejectedOfferExamples; sku and reason only. */
  examples: { sku: string; region: string; reason: string }[];
}

/** One generation of a stage on one offer. */
@entity("compute", "placement", "One generation of a stage and the capacity that it was given.")
@Index({
  name: "placement_generation",
  expression: `create unique index placement_generation on compute.placement (stage_run_id, generation)`,
})
@Index({
  name: "placement_lease",
  expression: `create index placement_lease on compute.placement (lease_expires_at) where state in ('provisioning', 'running')`,
})
@Index({
  name: "placement_ended",
  expression: `create index placement_ended on compute.placement (tenant_id, id) where state = 'ended'`,
})
@Index({
  name: "placement_log_uncommitted",
  expression: `create index placement_log_uncommitted on compute.placement (id) where log_complete and log_committed_at is null and log_removed_at is null`,
})
@Index({
  name: "placement_log_sha256",
  expression: `create index placement_log_sha256 on compute.placement (log_sha256) where log_sha256 is not null`,
})
export class Placement {
  @attr.id("The placement's id.") id!: string;
  @column.text() tenantId!: string;
  @attr.ref("The workload.", { index: true }) workloadId!: string;
  /** Stage row. */
  @column.text() stageRunId!: string;
  @attr.text("The stage's id in the payload.") stageId!: string;
  @attr.int("Number of the generation, from 1.") generation!: number;
  /** Fence of the claim that sent its latest order out. */
  @column.int() fence!: number;
  @attr.oneOf(PLACEMENT_STATUS, "Where it is.") state!: PlacementState;
  /** The order that may run now: the latest attempt. */
  @column.text() orderId!: string;
  @column.text() offerId!: string;
  @attr.text("Catalogue id of the chosen configuration.") sku!: string;
  @attr.text("Region.") region!: string;
  @attr.text("`vm` or `accelerator`, as it was placed.") computeClass!: string;
  @attr.text("GPU family; null on a CPU.", { nullable: true }) accelerator!: string | null;
  @attr.int("Devices of that family.") gpuCount!: number;
  @attr.float("Memory of one device in GB.") deviceMemoryGb!: number;
  @attr.float("Cores reserved for it.") vcpus!: number;
  @attr.float("Host memory reserved for it in GB.") memoryGb!: number;
  @attr.flag("The capacity may be taken back.") interruptible!: boolean;
  @attr.flag("The accelerators are declared for development and do not exist.") simulated!: boolean;
  @attr.flag("No accelerator was asked for by name, and the CPU stands in.") cpuFallback!: boolean;
  @attr.text("What to know of this capacity, such as that the image is not pulled; null for nothing.", {
    nullable: true,
  })
  note!: string | null;
  @document<IsolationReport, { nullable: true }>("Isolation as the host measured it; null before the host reported.", {
    nullable: true,
  })
  isolation!: IsolationReport | null;
  @attr.money("Price of the capacity for an hour, without the platform's fee.") rateMicrosPerHour!: bigint;
  /** Platform fee on top, in basis points of the charge. */
  @column.int() feeBasisPoints!: number;
  /** Reserved on the account for it; running time beyond what this pays for is cut off. */
  @column.money() heldMicros!: bigint;
  @attr.money("What was charged for it; null until it is settled.", { nullable: true }) chargedMicros!: bigint | null;
  @attr.int("Offers that matched when it was placed.") candidates!: number;
  @document<RejectedOffers>("Offers that were passed over: counts by reason and examples.") rejected!: RejectedOffers;
  @attr.int("Orders sent out for it.") attempts!: number;
  @attr.at("When its first order went out.") provisionedAt!: Date;
  @attr.at("When its command started; null before.", { nullable: true }) runningAt!: Date | null;
  /** Until when the host may keep the guest alive without us; proof of death when past. */
  @attr.at("When its lease ends unless the host is heard again.", { nullable: true }) leaseExpiresAt!: Date | null;
  @attr.at("When the host was last heard.", { nullable: true }) lastBeatAt!: Date | null;
  @column.oneOf(WANTS) want!: Want;
  /** Highest record number applied. */
  @column.int() appliedSeq!: number;
  @attr.int("Exit code; null when unknown or nothing ran.", { nullable: true }) exitCode!: number | null;
  @attr.text("Signal that ended the command.", { nullable: true }) signal!: string | null;
  /** Why the command never ran; null when it ran or has not tried yet. */
  @column.document<ExitRecord["startFailure"], { nullable: true }>({ nullable: true })
  startFailure!: ExitRecord["startFailure"];
  /** Why a declared output could not be saved; decides the end of a command that succeeded. */
  @column.text({ nullable: true }) outputFailure!: string | null;
  @attr.flag("The command was ended for lack of memory.") oom!: boolean;
  @attr.oneOf(KILLED_BY, "What ended it before its command did; null when the command ended by itself.", {
    nullable: true,
  })
  killedBy!: KilledBy | null;
  @attr.count("Measured running time in milliseconds; null until it ended.", { nullable: true }) ranMs!: number | null;
  @attr.at("When the command ended.", { nullable: true }) endedAt!: Date | null;
  @attr.at("When its resources were confirmed gone.", { nullable: true }) goneAt!: Date | null;
  @attr.text("How it ended, such as `completed`, `failed`, `boot_failed`, `lost`; null before.", { nullable: true })
  outcome!: string | null;
  @attr.text("Sentence for people on a failure.", { nullable: true }) message!: string | null;
  @attr.text("What interrupted it; null when nothing did.", { nullable: true }) interruptTrigger!: string | null;
  @attr.int("Generation that took over; null when none did.", { nullable: true }) supersededBy!: number | null;
  @attr.count("Bytes of its log so far.") logBytes!: number;
  @attr.text("SHA-256 of the whole log in hex; null until it is complete.", { nullable: true }) logSha256!:
    | string
    | null;
  @attr.flag("The log was cut off at its limit.") logTruncated!: boolean;
  @attr.flag("The end of the log was lost with its host.") logTailLost!: boolean;
  @attr.flag("No more log will come.") logComplete!: boolean;
  /** Set once the log lies in the object store under `logSha256`. */
  @column.at({ nullable: true }) logCommittedAt!: Date | null;
  /** When its log's time was over; from then on there is no log. */
  @column.at({ nullable: true }) logRemovedAt!: Date | null;
  /** Reports of work units that its runner had to drop. */
  @column.int({ defaultRaw: "0" }) droppedUnits!: number;
  @column.at() createdAt!: Date;
}

/** One order to a supplier for a placement. It owns the reserved capacity until it is confirmed gone. */
@table("compute", "attempt")
@Index({
  name: "attempt_open",
  expression: `create index attempt_open on compute.attempt (next_check_at) where state <> 'gone'`,
})
export class Attempt {
  /** Our order id, the supplier's idempotency token. */
  @column.id() id!: string;
  @column.text({ index: true }) placementId!: string;
  @column.text() tenantId!: string;
  @column.text() workloadId!: string;
  @column.int() number!: number;
  @column.int() generation!: number;
  @column.int() fence!: number;
  @column.oneOf(ATTEMPT_STATUS) state!: AttemptState;
  @column.text() supplier!: string;
  @column.text() offerId!: string;
  @column.text() sku!: string;
  @column.text() region!: string;
  @column.text() capacityId!: string;
  @column.int() cpuMillis!: number;
  @column.int() memoryMb!: number;
  @column.int() gpus!: number;
  /** Set in the transaction that gives the capacity back, once. */
  @column.at({ nullable: true }) releasedAt!: Date | null;
  /** SHA-256 of the one-time token, which is used up by the first record that follows its exchange. */
  @column.text({ nullable: true }) tokenHash!: string | null;
  @column.at() tokenExpiresAt!: Date;
  /** SHA-256 of the latest session that the token was exchanged for; any earlier one is fenced. */
  @column.text({ nullable: true }) sessionHash!: string | null;
  @column.at() bootDeadlineAt!: Date;
  @column.text({ nullable: true }) failureCode!: string | null;
  @column.text({ nullable: true }) failureMessage!: string | null;
  @column.at({ nullable: true }) terminateRequestedAt!: Date | null;
  /** When the reconciler asks the supplier about it next. */
  @column.at({ defaultRaw: "now()" }) nextCheckAt!: Date;
  /** Questions in a row that the supplier left without a useful answer; lengthens the wait for the next one. */
  @column.int({ defaultRaw: "0" }) fruitlessChecks!: number;
  /** Since when the supplier says that it is gone although nothing ended it. */
  @column.at({ nullable: true }) goneSeenAt!: Date | null;
  /** The host's last beat when that was first seen, by the clock of the process that took it. */
  @column.at({ nullable: true }) goneSeenBeatAt!: Date | null;
  /** What the supplier last said of it, for operators. */
  @column.text({ nullable: true }) supplierSaid!: string | null;
  @column.at({ nullable: true }) goneAt!: Date | null;
  @column.at() createdAt!: Date;
}
