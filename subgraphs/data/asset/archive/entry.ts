/** One file or folder of an archive, as its reader found it; the path is still the archive's own spelling. */
export interface ArchiveEntry {
  path: string;
  kind: "file" | "folder";
  executable: boolean;
  /** How long the content is; the reader refuses an archive that says otherwise later. */
  bytes: number;
  /** The content. Must be read to its end before the next entry is asked for. */
  content: AsyncIterable<Uint8Array>;
}

/** What may come out of one archive. */
export interface ArchiveLimits {
  files: number;
  /** Content in all, in bytes. */
  bytes: number;
  /** How many times its own size an archive may grow to. */
  ratio: number;
  /** Up to here, growth does not matter. */
  ratioFloorBytes: number;
}

export const ARCHIVE_KINDS = ["zip", "tar", "tar.gz", "tar.zst"] as const;
export type ArchiveKind = (typeof ARCHIVE_KINDS)[number];

const NO_BYTES: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }),
};

export function folder(path: string): ArchiveEntry {
  return { path, kind: "folder", executable: false, bytes: 0, content: NO_BYTES };
}
