import { crc32 } from "node:zlib";
import yauzl from "yauzl";
import { Refused } from "../../../../infra/kernel/refusal.ts";
import { ASSET } from "../asset.refusals.ts";
import { type ArchiveEntry, type ArchiveLimits, folder } from "./entry.ts";
import { unsafe } from "./entry-guard.ts";
import { damaged } from "./tar-header.ts";

/** Made on Unix: the upper half of the external attributes is a file mode. */
const MADE_ON_UNIX = 3;
const S_IFMT = 0o170000;
const S_IFREG = 0o100000;
const S_IFDIR = 0o040000;

/** Reads a zip file, which must be on disk: its table of contents is at its end. */
export async function* readZip(path: string, limits: ArchiveLimits): AsyncGenerator<ArchiveEntry, void, undefined> {
  const zip = await yauzl.openPromise(path, { decodeStrings: false, autoClose: false }).catch(cannotRead);
  try {
    if (zip.entryCount > limits.files * 2) throw new Refused(ASSET.too_many_files);
    const entries = zip.eachEntry();
    let bytes = 0;
    for (;;) {
      const next = await entries.next().catch(cannotRead);
      if (next.done) return;
      const entry = describe(next.value);
      bytes += entry.bytes;
      if (bytes > limits.ratioFloorBytes && bytes > zip.fileSize * limits.ratio) throw new Refused(ASSET.archive_bomb);
      yield entry.kind === "folder" ? entry : { ...entry, content: contentOf(zip, next.value, entry.path) };
    }
  } finally {
    zip.close();
  }
}

function cannotRead(error: Error): never {
  throw damaged(`it is no readable zip (${error.message.slice(0, 120)})`);
}

function describe(entry: yauzl.Entry): ArchiveEntry {
  const path = yauzl.getFileNameLowLevel(entry.generalPurposeBitFlag, entry.fileNameRaw, entry.extraFields, true);
  const mode = entry.versionMadeBy >>> 8 === MADE_ON_UNIX ? entry.externalFileAttributes >>> 16 : 0;
  const format = mode & S_IFMT;
  if (format !== 0 && format !== S_IFREG && format !== S_IFDIR) throw unsafe(path, "is a link, a device or a pipe");
  if (entry.isEncrypted()) throw unsafe(path, "is encrypted");
  if (path.endsWith("/") || format === S_IFDIR) {
    if (entry.uncompressedSize > 0) throw damaged("a folder has content");
    return folder(path);
  }
  return { ...folder(path), kind: "file", executable: (mode & 0o100) !== 0, bytes: entry.uncompressedSize };
}

/** A file's content; its length and its checksum must be what the table of contents says. */
async function* contentOf(
  zip: yauzl.ZipFile,
  entry: yauzl.Entry,
  path: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  const stream = await zip.openReadStreamPromise(entry).catch(cannotRead);
  let sum = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      sum = crc32(chunk, sum);
      yield chunk;
    }
  } catch (error) {
    cannotRead(error as Error);
  }
  if (sum >>> 0 !== entry.crc32 >>> 0) throw damaged(`the checksum of ${JSON.stringify(path.slice(0, 100))} is wrong`);
}
