import { column, table } from "../../../infra/db/attr.ts";

/** A piece of a generation's log as it arrived: raw bytes after redaction. Numbered per workload under its row's lock. */
@table("compute", "log_chunk")
export class LogChunk {
  @column.text({ primary: true }) workloadId!: string;
  /** Rises over all stages and generations of the workload, without gaps. */
  @column.int({ primary: true }) seq!: number;
  @column.text() tenantId!: string;
  @column.text() placementId!: string;
  @column.text() stageId!: string;
  @column.int() generation!: number;
  /** Where `bytes` start in the generation's log. */
  @column.count() byteOffset!: number;
  @column.bytes() bytes!: Buffer;
  @column.at() createdAt!: Date;
}
