import { createWriteStream } from "node:fs";
import { chmod, chown, lstat, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract, type Header } from "tar-stream";

export interface UnpackLimits {
  files: number;
  bytes: number;
  /** Owner of what is written; null for the host agent's own. */
  uid: number | null;
}

/** An archive that holds what no archive of ours may hold. */
export class UnsafeArchive extends Error {}

/**
 * Unpacks a tar into a fresh folder that nobody else writes to. Regular files and folders only: a link or a device, a
 * path that leaves the folder, a name that comes twice, or more than the limits, and it throws `UnsafeArchive`.
 */
export async function unpackTar(source: Readable, folder: string, limits: UnpackLimits): Promise<void> {
  const unpacker = extract();
  let files = 0;
  let bytes = 0;
  const reading = pipeline(source, unpacker);
  // The loop below ends with the same error; unheard, this one would end the process.
  reading.catch(() => {});
  for await (const entry of unpacker) {
    const header = entry.header;
    const path = safePath(header.name);
    files++;
    bytes += header.size ?? 0;
    if (files > limits.files) throw new UnsafeArchive(`more than ${limits.files} entries`);
    if (bytes > limits.bytes) throw new UnsafeArchive(`more than ${limits.bytes} bytes`);
    if (header.type === "directory") {
      await makeFolders(folder, path, limits.uid);
      entry.resume();
    } else if (header.type === "file" || header.type === "contiguous-file") {
      await makeFolders(folder, path.slice(0, -1), limits.uid);
      await writeFile(Readable.from(entry), join(folder, ...path), executable(header), limits.uid);
    } else throw new UnsafeArchive(`${header.name} is a ${header.type}, not a file or folder`);
  }
  await reading;
}

/** The parts of a relative path that stays where it is; `[]` for the archive's own root. */
export function safePath(name: string): string[] {
  if (name.includes("\0") || name.startsWith("/")) throw new UnsafeArchive(`unsafe path ${JSON.stringify(name)}`);
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..") || Buffer.byteLength(name) > 4096)
    throw new UnsafeArchive(`unsafe path ${JSON.stringify(name)}`);
  return parts;
}

function executable(header: Header): boolean {
  return ((header.mode ?? 0) & 0o111) !== 0;
}

async function makeFolders(folder: string, parts: string[], uid: number | null): Promise<void> {
  let path = folder;
  for (const part of parts) {
    path = join(path, part);
    try {
      await mkdir(path, { mode: 0o755 });
      if (uid !== null) await chown(path, uid, uid);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      if (!(await lstat(path)).isDirectory()) throw new UnsafeArchive(`${parts.join("/")} is both a file and a folder`);
    }
  }
}

/** @param path must not exist */
export async function writeFile(
  content: Readable,
  path: string,
  isExecutable: boolean,
  uid: number | null,
): Promise<void> {
  try {
    await pipeline(content, createWriteStream(path, { flags: "wx", mode: 0o644 }));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" || code === "EISDIR") throw new UnsafeArchive(`${path.split("/").at(-1)} comes twice`);
    throw error;
  }
  if (isExecutable) await chmod(path, 0o755);
  if (uid !== null) await chown(path, uid, uid);
}
