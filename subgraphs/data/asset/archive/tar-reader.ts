import { ByteReader } from "./byte-reader.ts";
import { type ArchiveEntry, folder } from "./entry.ts";
import { unsafe } from "./entry-guard.ts";
import { damaged, isZero, parsePax, parseTarHeader, TAR_BLOCK_BYTES, type TarHeader } from "./tar-header.ts";

/** Most bytes of a header that describes the next one: far above any path, far below what would hurt. */
const MAX_EXTENSION_BYTES = 64 * 1024;

/** What an extension says about the next entry. */
interface Extension {
  path?: string;
  size?: number;
}

/**
 * Reads a tar as a stream (ustar, pax and GNU). A reader of our own, because this one meets hostile input: it holds at
 * most one small header in memory, whatever a header claims; it insists on the end marker, so an archive that was cut
 * between two entries is seen as cut; and it refuses every type but files and folders.
 */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<ArchiveEntry, void, undefined> {
  const reader = new ByteReader(source);
  try {
    let extension: Extension = {};
    for (;;) {
      const header = await nextHeader(reader);
      if (!header) break;
      const more = await readExtension(reader, header);
      if (more) {
        extension = { ...extension, ...more };
        continue;
      }
      const { path, size, mode } = { ...header, ...extension };
      extension = {};
      const type = header.type === "0" && path.endsWith("/") ? "5" : header.type;
      if (type === "5") {
        if (size > 0) throw damaged("a folder has content");
        yield folder(path);
        continue;
      }
      requireFile(path, type);
      const body = new Body(reader, size);
      yield { path, kind: "file", executable: (mode & 0o100) !== 0, bytes: size, content: body };
      await body.finish();
    }
    await requireNothingElse(reader);
  } finally {
    await reader.close();
  }
}

async function nextHeader(reader: ByteReader): Promise<TarHeader | null> {
  const block = await reader.exactly(TAR_BLOCK_BYTES);
  if (!block) throw damaged("it ends before its end marker");
  return parseTarHeader(block);
}

/** What an extension header says of the next entry; null for any other header. */
async function readExtension(reader: ByteReader, header: TarHeader): Promise<Extension | null> {
  if (!"xgLK".includes(header.type)) return null;
  if (header.size > MAX_EXTENSION_BYTES) throw damaged("an extended header is too long");
  const bytes = await reader.exactly(padded(header.size));
  if (!bytes) throw damaged("it ends within an extended header");
  const data = bytes.subarray(0, header.size);
  if (header.type === "L") return { path: data.toString("utf8").replace(/\0.*$/s, "") };
  if (header.type === "K") return {}; // the target of a link, which is refused when it comes
  const records = parsePax(data);
  if (header.type === "g") {
    if (records.has("path") || records.has("size")) throw damaged("a global header names one entry");
    return {};
  }
  for (const key of records.keys())
    if (key.startsWith("GNU.sparse.")) throw unsafe(records.get("path") ?? header.path, "is sparse");
  const path = records.get("path");
  const size = records.get("size");
  if (size !== undefined && !/^\d{1,15}$/.test(size)) throw damaged("a size is out of range");
  return { ...(path === undefined ? {} : { path }), ...(size === undefined ? {} : { size: Number(size) }) };
}

const REFUSED_TYPES: Readonly<Record<string, string>> = {
  1: "is a link",
  2: "is a symbolic link",
  3: "is a device",
  4: "is a device",
  6: "is a pipe",
  S: "is sparse",
};

function requireFile(path: string, type: string): void {
  if (type !== "0" && type !== "7") throw unsafe(path, REFUSED_TYPES[type] ?? "is of a type that is not unpacked");
}

/** After the end marker nothing but padding may follow: content that one tool sees and another does not is a trap. */
async function requireNothingElse(reader: ByteReader): Promise<void> {
  for (let part = await reader.some(TAR_BLOCK_BYTES * 128); part; part = await reader.some(TAR_BLOCK_BYTES * 128))
    if (!isZero(part)) throw damaged("something follows its end marker");
}

function padded(size: number): number {
  return Math.ceil(size / TAR_BLOCK_BYTES) * TAR_BLOCK_BYTES;
}

/** One file's bytes within the archive. */
class Body implements AsyncIterable<Uint8Array> {
  readonly #reader: ByteReader;
  readonly #size: number;
  #left: number;

  constructor(reader: ByteReader, size: number) {
    this.#reader = reader;
    this.#size = size;
    this.#left = size;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    while (this.#left > 0) yield await this.#take();
  }

  /** Passes over what was not read, and the padding. */
  async finish(): Promise<void> {
    while (this.#left > 0) await this.#take();
    const padding = padded(this.#size) - this.#size;
    if (padding > 0 && !(await this.#reader.exactly(padding))) throw damaged("it ends within a file");
  }

  async #take(): Promise<Uint8Array> {
    const part = await this.#reader.some(this.#left);
    if (!part) throw damaged("it ends within a file");
    this.#left -= part.length;
    return part;
  }
}
