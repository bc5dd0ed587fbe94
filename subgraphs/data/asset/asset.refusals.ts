import { refusals } from "../../../infra/kernel/refusal.ts";

export const ASSET = refusals({
  invalid_import: [400, "A field of the upload is not acceptable.", "Correct the field that the message names."],
  unsupported_archive: [400, "This kind of archive cannot be unpacked.", "Use .zip, .tar, .tar.gz or .tar.zst."],
  invalid_archive: [400, "The archive is damaged or cut short.", "Make the archive again and upload it whole."],
  unsafe_archive: [
    400,
    "The archive holds something that is not unpacked.",
    "Pack regular files and folders with relative paths only.",
  ],
  too_many_files: [400, "The archive holds too many files.", "Pack fewer files, or put an archive inside the archive."],
  archive_bomb: [400, "The archive is far larger inside than outside.", "Upload the content in a plain .tar."],
  asset_too_large: [400, "The upload is too large.", "Split it, or keep it where runs can fetch it."],
  storage_quota_exceeded: [409, "The team's storage is full.", "Delete assets that are no longer used."],
  imports_in_progress: [
    409,
    "The team has as many uploads and imports under way as it may.",
    "Wait until one of them is done.",
  ],
  asset_in_use: [409, "The asset is in use.", "Wait until the work that uses it is over."],
  asset_commit_failed: [500, "The asset could not be recorded.", "Look at the list of assets, then upload again."],
  object_store_unavailable: [
    502,
    "The object store cannot be reached or has no space left.",
    "Repeat the upload later.",
  ],
});

/** Refusals of references in a body. */
export const ASSET_REFERENCE = refusals({
  asset_not_found: [400, "The team has no such asset.", "Use the id of an asset in the team's list."],
  asset_not_ready: [409, "The asset is not ready.", "Wait until its state is ready, or use another asset."],
});
