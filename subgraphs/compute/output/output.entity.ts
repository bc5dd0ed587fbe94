import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, object } from "../../../infra/db/attr.ts";

/** A named result of a stage, kept in the object store. */
@object("compute", "output", "A named result of a stage.")
@Index({
  name: "output_identity",
  expression: `create unique index output_identity on compute.output (workload_id, stage_id, generation, name)`,
})
@Index({ name: "output_sha256", properties: ["sha256"] })
export class Output {
  @column.id() id!: string;
  @column.text() tenantId!: string;
  @attr.ref("The workload.") workloadId!: string;
  @attr.text("The stage.") stageId!: string;
  @attr.int("The generation that made it.") generation!: number;
  @attr.text("Its name.") name!: string;
  @attr.text("SHA-256 of the bytes in hex.") sha256!: string;
  @attr.count("Size.") bytes!: number;
  @attr.text("Media type.") media!: string;
  @attr.flag("A tar archive of a folder.") isTar!: boolean;
  @attr.at("When its time was over and its bytes went; null while they can be downloaded.", { nullable: true })
  removedAt!: Date | null;
  @attr.at("When it was saved.") createdAt!: Date;
}
