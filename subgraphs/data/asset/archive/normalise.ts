import { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { Refused } from "../../../../infra/kernel/refusal.ts";
import { ASSET } from "../asset.refusals.ts";
import type { ArchiveEntry, ArchiveKind, ArchiveLimits } from "./entry.ts";
import { EntryGuard } from "./entry-guard.ts";
import { withoutTop } from "./strip-top.ts";
import { damaged } from "./tar-header.ts";
import { readTar } from "./tar-reader.ts";
import { writeTar } from "./tar-writer.ts";
import { readZip } from "./zip-reader.ts";

/** Where an archive's bytes are: a stream, or a file for a zip. */
export type ArchiveSource =
  | { kind: Exclude<ArchiveKind, "zip">; bytes: AsyncIterable<Uint8Array> }
  | { kind: "zip"; path: string };

/**
 * Any supported archive as one checked tar, as a stream. Throws a refusal in the middle of it when the archive turns out
 * to be unsafe, damaged or too large, so whoever stores it must drop what came before.
 */
export function normalisedTar(
  source: ArchiveSource,
  limits: ArchiveLimits,
  { stripTop = false }: { stripTop?: boolean | undefined } = {},
): AsyncGenerator<Buffer, void, undefined> {
  const entries = entriesOf(source, limits);
  return checkedTar(stripTop ? withoutTop(entries) : entries, limits);
}

/** Entries from anywhere as one checked tar; refuses as `normalisedTar` does. */
export function checkedTar(
  entries: AsyncIterable<ArchiveEntry>,
  limits: ArchiveLimits,
): AsyncGenerator<Buffer, void, undefined> {
  return writeTar(admitted(entries, new EntryGuard(limits)));
}

async function* admitted(entries: AsyncIterable<ArchiveEntry>, guard: EntryGuard): AsyncGenerator<ArchiveEntry> {
  for await (const entry of entries) {
    const clean = guard.admit(entry);
    if (clean) yield clean;
  }
}

function entriesOf(source: ArchiveSource, limits: ArchiveLimits): AsyncIterable<ArchiveEntry> {
  switch (source.kind) {
    case "zip":
      return readZip(source.path, limits);
    case "tar":
      return readTar(source.bytes);
    default:
      return readTar(decompressed(source.kind, source.bytes, limits));
  }
}

/** The inner bytes of a compressed archive, watched for growth out of proportion. */
async function* decompressed(
  kind: "tar.gz" | "tar.zst",
  bytes: AsyncIterable<Uint8Array>,
  limits: ArchiveLimits,
): AsyncGenerator<Uint8Array, void, undefined> {
  let outside = 0;
  let inside = 0;
  let failure: unknown = null;
  const counted = async function* () {
    try {
      for await (const chunk of bytes) {
        outside += chunk.length;
        yield chunk;
      }
    } catch (error) {
      failure = error; // the sender's own trouble, told apart from a damaged archive below
      throw error;
    }
  };
  const source = Readable.from(counted(), { objectMode: false });
  const inner = kind === "tar.gz" ? createGunzip() : createZstdDecompress();
  source.on("error", (error) => inner.destroy(error)).pipe(inner);
  try {
    for await (const chunk of inner as AsyncIterable<Buffer>) {
      inside += chunk.length;
      if (inside > limits.ratioFloorBytes && inside > outside * limits.ratio) throw new Refused(ASSET.archive_bomb);
      yield chunk;
    }
  } catch (error) {
    if (failure !== null || error instanceof Refused) throw error;
    throw damaged(`it cannot be decompressed (${(error as Error).message})`);
  } finally {
    inner.destroy();
    source.destroy();
  }
}
