import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, document, entity } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";
import { WORKLOAD_STATES, type WorkloadState } from "./workload.machine.ts";
import type { WorkloadPayload } from "./workload.payload.ts";

/** A page outside the platform that a run shows itself on. */
export interface WorkloadLink {
  kind: string;
  url: string;
}

export const WORKLOAD_STATUS = closed("WorkloadStatus", "Where a workload is in its life.", WORKLOAD_STATES);

/** One submitted batch job. */
@entity("compute", "workload", "One submitted batch job.")
@Index({ name: "workload_list", properties: ["tenantId", "createdAt", "id"] })
@Index({
  name: "workload_active",
  expression: `create index workload_active on compute.workload (tenant_id) where status not in ('completed', 'failed', 'cancelled')`,
})
@Index({
  name: "workload_due",
  expression: `create index workload_due on compute.workload (complete_by) where complete_by is not null and status not in ('completed', 'failed', 'cancelled')`,
})
@Index({
  name: "workload_unsettled",
  expression: `create index workload_unsettled on compute.workload (terminal_at) where terminal_at is not null and settled_at is null`,
})
@Index({
  name: "workload_results_kept",
  expression: `create index workload_results_kept on compute.workload (terminal_at) where terminal_at is not null and results_removed_at is null`,
})
@Index({
  name: "workload_placements_kept",
  expression: `create index workload_placements_kept on compute.workload (terminal_at) where results_removed_at is not null and placements_forgotten_at is null`,
})
export class Workload {
  @attr.id("The workload's id, `wl_…`.") id!: string;
  @attr.ref("The team that it belongs to.") tenantId!: string;
  @attr.ref("The member who submitted it; null when a team's key did.", { nullable: true }) ownerUserId!: string | null;
  @column.text() keyId!: string;
  @attr.text("Display name; empty when none was given.") name!: string;
  @attr.oneOf(WORKLOAD_STATUS, "Where it is in its life.") status!: WorkloadState;
  @attr.int("Rises by one with every change of status.") revision!: number;
  @attr.text(
    "Why it ended as it did, such as `exit_nonzero` or `budget_exhausted`; null before the end and for plain success.",
    { nullable: true },
  )
  reason!: string | null;
  @attr.text("A sentence for people on how it ended; null before the end.", { nullable: true }) message!: string | null;
  @attr.text("Why it waits, such as `no_matching_offer`; null when it does not wait.", { nullable: true })
  waitingReason!: string | null;
  @attr.at("Since when it has waited without interruption, for whatever reasons; null when it does not wait.", {
    nullable: true,
  })
  waitingSince!: Date | null;
  @document<WorkloadPayload>("What was accepted, in wire spelling, with the server's defaults filled in.")
  payload!: WorkloadPayload;
  @attr.money("Its own spending limit; null for none.", { nullable: true }) maxCostMicros!: bigint | null;
  @attr.at("When it must be done; null for no deadline.", { nullable: true }) completeBy!: Date | null;
  @attr.money("What has been charged for it so far.") spendMicros!: bigint;
  /** Reserved on the account for placements that have not been settled. */
  @column.money() heldMicros!: bigint;
  /** Highest share of its own limit that its owner was warned of, in percent. */
  @column.int({ defaultRaw: "0" }) budgetWarnedPercent!: number;
  @attr.at("When it was asked to cancel.", { nullable: true }) cancelRequestedAt!: Date | null;
  /** Number of its latest event; the next one takes the next number under the row's lock. */
  @column.int() eventSeq!: number;
  @column.int() logSeq!: number;
  @attr.int("Exit code of the command that decided the end; null when unknown or none ran.", { nullable: true })
  exitCode!: number | null;
  @attr.text("Signal that ended that command; null when none did.", { nullable: true }) signal!: string | null;
  /** Pages that its live output named. */
  @column.document<WorkloadLink[], { defaultRaw: string }>({ defaultRaw: "'[]'::jsonb" }) links!: WorkloadLink[];
  @attr.at("When it was accepted.") createdAt!: Date;
  @attr.at("When it last changed.") updatedAt!: Date;
  @attr.at("When it turned terminal.", { nullable: true }) terminalAt!: Date | null;
  @attr.at("When all of its resources were confirmed gone.", { nullable: true }) resourcesReleasedAt!: Date | null;
  @attr.at("When its last charge was posted.", { nullable: true }) settledAt!: Date | null;
  @attr.at("When the time of its outputs, logs and manifests was over; null while they are kept.", { nullable: true })
  resultsRemovedAt!: Date | null;
  /** When it was forgotten where it ran. */
  @column.at({ nullable: true }) placementsForgottenAt!: Date | null;
}
