import { refusals } from "../../../infra/kernel/refusal.ts";

export const ASSET = refusals({
  invalid_import: [400, "A field of the upload is not acceptable.", "Correct the field that the message names."],
  invalid_ref: [
    400,
    "The ref is not a name that a branch, tag or commit can have.",
    "Give a branch, tag or commit of at most 255 bytes, or leave it out for main.",
  ],
  token_not_allowed: [
    400,
    "This kind of import takes no credential.",
    "Use a signed link for a private file, and leave the token out.",
  ],
  source_unavailable: [
    400,
    "The source did not give the file.",
    "Check the name and that the source is reachable, then import again.",
  ],
  source_unauthorized: [
    400,
    "The source wants other credentials.",
    "Send a token that may read it, or connect an account that may.",
  ],
  source_private_address: [
    400,
    "The source is not on the public internet.",
    "Use a public address, or upload the file. An operator opens private hosts with NODUS_ALLOW_PRIVATE_HOSTS.",
  ],
  source_timeout: [400, "The source took too long.", "Import less at once, or upload the file."],
  checksum_mismatch: [
    400,
    "A file of the source is not what the source's own list says it is.",
    "Import again; if it stays so, the source is damaged.",
  ],
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
  asset_delete_failed: [
    500,
    "The deletion did not finish.",
    "Delete the asset again; it stays in state deleting until then, and is finished by itself later.",
  ],
  import_interrupted: [500, "The process that fetched the source ended before it was done.", "Import again."],
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
  asset_region: [
    400,
    "The asset is of a region that the work's data may not be in.",
    "Add the asset's region to policy.data_regions, or use another asset.",
  ],
});
