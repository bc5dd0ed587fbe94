import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import {
  type ByteRange,
  clampRange,
  type ListedObject,
  type ListingPage,
  type ObjectStore,
  ObjectTooLarge,
  type OpenObject,
  type PutTerms,
  requireNamePrefix,
  requireObjectName,
  StorageFull,
  type StoredObject,
} from "./object-store.ts";

const FOLDER_MODE = 0o700;
/** As much as a small output needs. */
const PROBE = new Uint8Array(64 * 1024);
const FILE_MODE = 0o600;

/**
 * Objects as files, `objects/ab/cd/<sha256>`, for one host. A put writes to `temp/`, flushes, and moves the file to its
 * name, so a name always stands for the whole content; a crash can only leave a file in `temp/`.
 */
export async function openDiskStore(folder: string): Promise<ObjectStore> {
  const store = new DiskStore(folder);
  await store.prepare();
  return store;
}

class DiskStore implements ObjectStore {
  readonly #objects: string;
  readonly #temp: string;

  constructor(folder: string) {
    this.#objects = path.resolve(folder, "objects");
    this.#temp = path.resolve(folder, "temp");
  }

  async prepare(): Promise<void> {
    await mkdir(this.#objects, { recursive: true, mode: FOLDER_MODE });
    await mkdir(this.#temp, { recursive: true, mode: FOLDER_MODE });
  }

  async put(source: AsyncIterable<Uint8Array>, { maxBytes, claim }: PutTerms): Promise<StoredObject> {
    const temp = path.join(this.#temp, randomUUID());
    try {
      const stored = await writeAll(temp, source, maxBytes);
      await claim?.(stored);
      await this.#moveIn(temp, stored.sha256);
      return stored;
    } catch (error) {
      await rm(temp, { force: true });
      throw asStorageFull(error);
    }
  }

  async open(sha256: string, range?: ByteRange): Promise<OpenObject | null> {
    const file = await orNull(open(this.#pathOf(sha256), "r"));
    if (!file) return null;
    try {
      const bytes = (await file.stat()).size;
      const part = clampRange(range, bytes);
      if (!part) {
        await file.close();
        return { stream: Readable.from([]), bytes, streamBytes: 0 };
      }
      return { stream: file.createReadStream(part), bytes, streamBytes: part.end - part.start + 1 };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async has(sha256: string): Promise<boolean> {
    return (await orNull(stat(this.#pathOf(sha256)))) !== null;
  }

  async remove(sha256: string): Promise<void> {
    await rm(this.#pathOf(sha256), { force: true });
  }

  async list({ prefix = "", after, limit }: ListingPage): Promise<ListedObject[]> {
    requireNamePrefix(prefix);
    const listed: ListedObject[] = [];
    for await (const sha256 of this.#names(prefix, after ?? "")) {
      if (listed.length >= limit) break;
      const found = await orNull(stat(this.#pathOf(sha256))); // it may be removed just now
      if (found) listed.push({ sha256, bytes: found.size, storedAt: found.mtime });
    }
    return listed;
  }

  async sweepTemp(olderThanMs: number): Promise<number> {
    const before = Date.now() - olderThanMs;
    let swept = 0;
    for (const name of await readdir(this.#temp)) {
      const file = path.join(this.#temp, name);
      const found = await orNull(stat(file)); // its put may end just now
      if (!found || found.mtimeMs > before) continue;
      await rm(file, { force: true });
      swept++;
    }
    return swept;
  }

  async ping(): Promise<void> {
    const probe = path.join(this.#temp, `ping-${randomUUID()}`);
    try {
      const file = await open(probe, "wx", FILE_MODE);
      try {
        await file.writeFile(PROBE); // an empty file would fit on a full disk
        await file.sync();
      } finally {
        await file.close();
      }
    } finally {
      await rm(probe, { force: true });
    }
  }

  /** Names in order. Folders that hold nothing behind `after`, or with another prefix, are not read. */
  async *#names(prefix: string, after: string): AsyncGenerator<string> {
    const wanted = (name: string) =>
      prefix.startsWith(name.slice(0, prefix.length)) && name >= after.slice(0, name.length);
    for (const first of await namesIn(this.#objects)) {
      if (!wanted(first)) continue;
      for (const second of await namesIn(path.join(this.#objects, first))) {
        if (!wanted(first + second)) continue;
        for (const name of await namesIn(path.join(this.#objects, first, second)))
          if (wanted(name) && name !== after) yield name;
      }
    }
  }

  #pathOf(sha256: string): string {
    requireObjectName(sha256);
    return path.join(this.#objects, sha256.slice(0, 2), sha256.slice(2, 4), sha256);
  }

  /** Gives a finished file its name. An equal object that is already there is replaced by the same bytes. */
  async #moveIn(temp: string, sha256: string): Promise<void> {
    const target = this.#pathOf(sha256);
    const folder = path.dirname(target);
    await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
    await rename(temp, target);
    // Entries of folders are flushed too, upwards as far as they may be new: else a power cut could lose the name.
    for (const made of [folder, path.dirname(folder), this.#objects]) await flush(made);
  }
}

async function writeAll(temp: string, source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<StoredObject> {
  const hash = createHash("sha256");
  let bytes = 0;
  const file = await open(temp, "wx", FILE_MODE);
  try {
    for await (const chunk of source) {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) throw new ObjectTooLarge(maxBytes);
      hash.update(chunk);
      await writeChunk(file, chunk);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return { sha256: hash.digest("hex"), bytes };
}

async function writeChunk(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let done = 0; done < chunk.byteLength; ) {
    const { bytesWritten } = await file.write(chunk, done, chunk.byteLength - done);
    done += bytesWritten;
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return ((await orNull(readdir(folder))) ?? []).sort();
}

async function flush(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The value, or null when the file is not there. */
async function orNull<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

function asStorageFull(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "ENOSPC" && code !== "EDQUOT") return error;
  return new StorageFull("the object store has no space left", { cause: error });
}
