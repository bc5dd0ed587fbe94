/** What counts as data when an import from Hugging Face names no files. The list is published in docs/assets.md. */
export const DATA_ENDINGS = [
  ...["parquet", "csv", "tsv", "json", "jsonl", "ndjson", "arrow", "txt", "npy", "npz", "h5", "safetensors"],
  ...["zip", "gz", "zst", "tar", "tgz", "bz2", "xz"],
  ...["jpg", "jpeg", "png", "gif", "webp", "bmp", "tif", "tiff"],
  ...["wav", "mp3", "flac", "ogg", "opus", "m4a"],
] as const;

const ENDINGS: ReadonlySet<string> = new Set(DATA_ENDINGS);

/** Whether a path has the ending of a data file, in any case of its letters. */
export function isDataFile(path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  return dot > 0 && ENDINGS.has(name.slice(dot + 1).toLowerCase());
}
