import { Index } from "@mikro-orm/decorators/legacy";
import { attr, column, entity, table } from "../../../infra/db/attr.ts";
import { closed } from "../../../infra/db/closed.ts";
import type { Sealed } from "../secret/secret-box.ts";

export const ASSET_STATES = closed("AssetState", "Where an asset is in its life.", [
  "importing",
  "ready",
  "failed",
  "deleting",
  "deleted",
]);
export type AssetState = (typeof ASSET_STATES)[number];

const ASSET_FORMATS = closed("AssetFormat", "How an asset is kept: one file, or a checked tar of a tree.", [
  "tar",
  "file",
]);
export type AssetFormat = (typeof ASSET_FORMATS)[number];

@entity("data", "asset", "Code or data of a team, kept for its runs.")
@Index({ name: "asset_tenant", properties: ["tenantId", "id"] })
@Index({ name: "asset_sha256", properties: ["sha256"] })
@Index({
  name: "asset_deleted",
  expression: "create index asset_deleted on data.asset (deleted_at) where state = 'deleted'",
})
@Index({
  name: "asset_unfinished",
  expression:
    "create index asset_unfinished on data.asset (tenant_id, state) where state in ('importing', 'failed', 'deleting')",
})
export class Asset {
  @attr.id("The asset's id.") id!: string;
  @column.text() tenantId!: string;
  @attr.text("Where it came from: `upload` for bytes that were sent, else the kind of the import.") kind!: string;
  @attr.text("The file name it came with.") name!: string;
  @attr.oneOf(ASSET_STATES, "Where it is in its life. Only a ready asset can be used.") state!: AssetState;
  @attr.text("The revision of its source; null where a source has none.", { nullable: true }) revision!: string | null;
  @attr.text("SHA-256 of the stored bytes, in hex; null until they are stored.", { nullable: true })
  sha256!: string | null;
  @attr.oneOf(ASSET_FORMATS, "How it is kept; null until it is stored.", { nullable: true })
  format!: AssetFormat | null;
  @attr.text("The region of the connection whose rows these are; null for all other assets.", { nullable: true })
  region!: string | null;
  @attr.count("Bytes that count against the team's storage.") storedBytes!: number;
  @attr.count("Bytes that came from its source, before packing.") importedBytes!: number;
  @attr.at("When it was made.") createdAt!: Date;
  @attr.at("When it became ready.", { nullable: true }) readyAt!: Date | null;
  @attr.at("When it was deleted; it can be read for 30 days after.", { nullable: true }) deletedAt!: Date | null;
  @attr.text("Why it failed, in one word.", { nullable: true }) error!: string | null;
  @attr.text("Why it failed, for a person; free of values of the request.", { nullable: true })
  errorMessage!: string | null;
  /** Counts what changed of it; a stream goes on after the last number that it showed. */
  @column.int({ defaultRaw: "0" }) changeSeq!: number;
}

/**
 * An import that is admitted and not over. It is resumable unless a credential came along: that is in the memory of one
 * process only. `fence` counts the processes that took it up; a write with an older number comes too late.
 */
@table("data", "asset_import")
@Index({ name: "asset_import_lease", properties: ["leaseUntil"] })
export class AssetImport implements Sealed {
  @column.id() assetId!: string;
  @column.text() tenantId!: string;
  /** The request, sealed since a signed link is as good as a credential. */
  @column.text() masterKeyId!: string;
  @column.bytes() wrappedKey!: Buffer;
  @column.bytes() ciphertext!: Buffer;
  @column.flag() resumable!: boolean;
  @column.int() fence!: number;
  /** Until when its process has it; free before the first one came and after one let go. */
  @column.at() leaseUntil!: Date;
  /** When it fails whatever it is at. */
  @column.at() deadlineAt!: Date;
  @column.at() createdAt!: Date;
}

/** A holder, such as a workload, that keeps an asset from deletion until it lets go. */
@table("data", "asset_pin")
@Index({ name: "asset_pin_asset", properties: ["assetId"] })
export class AssetPin {
  @column.text({ primary: true }) holderId!: string;
  @column.text({ primary: true }) assetId!: string;
  @column.text() tenantId!: string;
  @column.at() createdAt!: Date;
}

/** An upload, or an import under its asset's id, that is under way. It counts against the team's storage and its number of uploads while it is heard of. */
@table("data", "asset_upload")
@Index({ name: "asset_upload_tenant", properties: ["tenantId"] })
@Index({ name: "asset_upload_sha256", properties: ["sha256"] })
export class AssetUpload {
  @column.id() id!: string;
  @column.text() tenantId!: string;
  @column.count() stagedBytes!: number;
  /** The stored bytes that it is about to make an asset of. */
  @column.text({ nullable: true }) sha256!: string | null;
  @column.at() startedAt!: Date;
  @column.at() seenAt!: Date;
}

/** Bytes in the object store that assets or uploads refer to. The row's lock decides between using and removing them. */
@table("data", "asset_object")
@Index({
  name: "asset_object_removing",
  expression:
    "create index asset_object_removing on data.asset_object (removing_since) where removing_since is not null",
})
export class AssetObject {
  @column.text({ primary: true }) sha256!: string;
  @column.count() bytes!: number;
  @column.at() createdAt!: Date;
  /** Since when they are being removed; they must not be used any more. */
  @column.at({ nullable: true }) removingSince!: Date | null;
}
