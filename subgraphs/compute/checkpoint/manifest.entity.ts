import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, document, object } from "../../../infra/db/attr.ts";

/** What a generation saved at one point: a checkpoint, or at the end of a stage its final state. */
@object("compute", "manifest", "What a generation saved at one point of its run.")
@Index({
  name: "manifest_order",
  expression: `create unique index manifest_order on compute.manifest (workload_id, stage_id, generation, sequence)`,
})
@Index({
  name: "manifest_objects",
  expression: `create index manifest_objects on compute.manifest using gin (manifest jsonb_path_ops)`,
})
export class Manifest {
  @attr.id("The manifest's id, `manifest_…`.") id!: string;
  @column.text() tenantId!: string;
  @attr.ref("The workload.") workloadId!: string;
  @attr.text("The stage.") stageId!: string;
  @attr.int("The generation.") generation!: number;
  @attr.int("Its number within the generation, from 1.") sequence!: number;
  @attr.flag("The last one of its stage.") final!: boolean;
  @document<Record<string, unknown>>("Files and outputs with hashes and sizes, in wire spelling.") manifest!: Record<
    string,
    unknown
  >;
  @attr.at("When it was committed.") createdAt!: Date;
}
