import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, object } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";

export const EXPORT_STATES = closed("ExportState", "Where the export of a query is in its life.", [
  "pending",
  "running",
  "cleanup",
  "ready",
]);
export type ExportState = (typeof EXPORT_STATES)[number];

export const EXPORT_FORMATS = closed("ExportFormat", "What kind of file an export makes.", ["parquet", "csv"]);
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/**
 * The export of a query's rows into an asset. A failed one is `cleanup` while something of it is left, and is not shown
 * any more after that. `fence` counts the processes that took it up; a write with an older number comes too late.
 */
@object("data", "query_export", "The export of a query's rows into an asset.")
@Index({ name: "query_export_asset", properties: ["assetId"] })
@Index({ name: "query_export_connection", properties: ["connectionId"] })
@Index({
  name: "query_export_unfinished",
  expression:
    "create index query_export_unfinished on data.query_export (state, created_at) where state <> 'ready' and cleaned_at is null",
})
@Index({
  name: "query_export_reuse",
  expression:
    "create index query_export_reuse on data.query_export (tenant_id, connection_id, query_hash) where state = 'ready'",
})
export class QueryExport {
  @attr.id("The export's id.") id!: string;
  @column.text() tenantId!: string;
  @attr.ref("The asset that it makes.") assetId!: string;
  @attr.ref("The connection that it reads.") connectionId!: string;
  /** The version of the credential that it was admitted with. */
  @column.text() secretId!: string;
  @column.int() secretVersion!: number;
  /** The query; null as soon as it is not needed any more. */
  @column.text({ nullable: true }) sql!: string | null;
  @attr.text("SHA-256 of the query without outer whitespace, in hex.") queryHash!: string;
  @attr.text("The connection's branch; null when it has none.", { nullable: true }) branch!: string | null;
  @attr.oneOf(EXPORT_FORMATS, "What kind of file it makes.") format!: ExportFormat;
  @attr.oneOf(EXPORT_STATES, "Where it is in its life.") state!: ExportState;
  @attr.count("Rows that came so far.", { nullable: true }) rowCount!: number | null;
  @attr.count("Bytes that came so far; of the file, once it is ready.", { nullable: true }) bytes!: number | null;
  @attr.at("When it was admitted.") createdAt!: Date;
  @attr.at("When its query began; null before.", { nullable: true }) startedAt!: Date | null;
  @attr.at("When it fails, whatever it is at.") deadlineAt!: Date;
  /** When it was last put into the queue. */
  @column.at() queuedAt!: Date;
  @column.int() fence!: number;
  /** Until when its process has it; null while it is in nobody's hands. */
  @column.at({ nullable: true }) leaseUntil!: Date | null;
  /** Bytes in the object store that it is about to make an asset of. */
  @column.text({ nullable: true }) objectSha256!: string | null;
  @column.at({ nullable: true }) endedAt!: Date | null;
  /** When nothing was left of a failed one. */
  @column.at({ nullable: true }) cleanedAt!: Date | null;
}
