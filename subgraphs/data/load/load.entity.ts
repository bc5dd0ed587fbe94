import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, object } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";

const LOAD_STATES = closed("SinkLoadState", "Where the load of an output is in its life.", [
  "pending",
  "loading",
  "loaded",
  "failed",
]);

/**
 * Whether the row of the run beside the loaded rows has its last figures: `open` while the workload may still cost
 * something, `due` when they are known and not yet written, `lost` when nobody could write them.
 */
const RUN_STATES = closed("SinkRunState", "Whether the figures of a run beside its loaded rows are final.", [
  "none",
  "open",
  "due",
  "final",
  "lost",
]);
export type RunState = (typeof RUN_STATES)[number];

/**
 * The load of one output into a table, one row for all tries. `fence` counts the processes that took it up; a write with
 * an older number comes too late.
 */
@object("data", "sink_load", "The load of an output into a table of the team's.")
@Index({
  name: "sink_load_output",
  expression: "create unique index sink_load_output on data.sink_load (workload_id, stage_id, generation, name)",
})
@Index({ name: "sink_load_connection", properties: ["connectionId"] })
@Index({
  name: "sink_load_unfinished",
  expression: "create index sink_load_unfinished on data.sink_load (created_at) where state in ('pending', 'loading')",
})
@Index({
  name: "sink_load_run_due",
  expression: "create index sink_load_run_due on data.sink_load (queued_at) where run_state = 'due'",
})
export class SinkLoad {
  @attr.id("The load's id.") id!: string;
  @column.text() tenantId!: string;
  @attr.ref("The workload that made the output.") workloadId!: string;
  @attr.text("The stage that made it.") stageId!: string;
  @attr.int("The generation that made it.") generation!: number;
  @attr.text("Name of the output.") name!: string;
  @attr.ref("The connection whose database has the table.") connectionId!: string;
  /** The version of the credential that was pinned when the workload was admitted. */
  @column.text() secretId!: string;
  @column.int() secretVersion!: number;
  @attr.text("The table, in the schema public.") targetTable!: string;
  /** Where the run left the file; its ending says what it is. */
  @column.text() path!: string;
  @column.text() sha256!: string;
  @column.count() bytes!: number;
  @column.flag() isTar!: boolean;
  @attr.oneOf(LOAD_STATES, "Where it is in its life.") state!: "pending" | "loading" | "loaded" | "failed";
  @attr.count("Rows that were loaded; null unless it is loaded.", { nullable: true }) rowCount!: number | null;
  @attr.text("One word on why it failed; null unless it did.", { nullable: true }) error!: string | null;
  /** Processes that took it up since it was last asked for, then tries to write the run's final figures. */
  @column.int() attempts!: number;
  @column.int() fence!: number;
  /** Until when its process has it; null while it is in nobody's hands. */
  @column.at({ nullable: true }) leaseUntil!: Date | null;
  /** When it was last put into the queue. */
  @column.at() queuedAt!: Date;
  @column.oneOf(RUN_STATES) runState!: RunState;
  @attr.at("When it was first asked for.") createdAt!: Date;
  @attr.at("When it was last taken up; null before.", { nullable: true }) startedAt!: Date | null;
  @attr.at("When it was loaded or failed; null before.", { nullable: true }) endedAt!: Date | null;
}
