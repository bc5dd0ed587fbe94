import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, document, object } from "../../../infra/db/attr.ts";

/** One recorded change in a workload's life. */
@object("compute", "workload_event", "One recorded change in a workload's life.")
@Index({
  name: "workload_event_order",
  expression: `create unique index workload_event_order on compute.workload_event (workload_id, seq)`,
})
export class WorkloadEvent {
  @attr.id("The event's id, `evt_…`.") id!: string;
  @column.text() tenantId!: string;
  @attr.ref("The workload.") workloadId!: string;
  @attr.int("Its number within the workload, from 1 without gaps; the cursor of `after`.") seq!: number;
  @attr.text("What happened, such as `workload.running`.") type!: string;
  @document<Record<string, unknown>>("Particulars, in wire spelling.") payload!: Record<string, unknown>;
  @attr.at("When it happened.") createdAt!: Date;
}
