import { constants, createReadStream } from "node:fs";
import { lstat, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { pack } from "tar-stream";

/** Never part of an output. */
export const RUNNER_PRIVATE: ReadonlySet<string> = new Set([".nodus"]);

/** Folders that can be made again and would bury what a person looks for; left out unless an output was declared. */
export const REBUILDABLE: ReadonlySet<string> = new Set([
  ...RUNNER_PRIVATE,
  ...["__pycache__", ".cache", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".ipynb_checkpoints"],
  ...["node_modules", "site-packages", ".venv", "venv", ".git"],
]);

export interface TarEntry {
  /** Relative to the archived folder, `/` between parts. */
  path: string;
  file: string;
  bytes: number;
  executable: boolean;
}

/**
 * The regular files below a folder in the order of their path's bytes. Links are not followed and devices are not read:
 * what a guest left there must not lead to a file of the host.
 * @param leftOut names of folders that are passed over
 */
export async function filesBelow(folder: string, leftOut: ReadonlySet<string>, maxFiles: number): Promise<TarEntry[]> {
  const entries: TarEntry[] = [];
  const visit = async (relative: string): Promise<void> => {
    for (const entry of await readdir(join(folder, relative), { withFileTypes: true })) {
      const path = relative === "" ? entry.name : `${relative}/${entry.name}`;
      if (entry.isDirectory() && !leftOut.has(entry.name)) await visit(path);
      if (!entry.isFile()) continue;
      const stats = await lstat(join(folder, path));
      entries.push({ path, file: join(folder, path), bytes: stats.size, executable: (stats.mode & 0o111) !== 0 });
      if (entries.length > maxFiles) throw new Error(`more than ${maxFiles} files`);
    }
  };
  await visit("");
  return entries.sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
}

/** A tar that is equal for equal files: no owners, no times, one order. */
export function tarOf(entries: TarEntry[]): Readable {
  const archive = pack();
  const write = async () => {
    for (const { path, file, bytes, executable } of entries) {
      const header = {
        name: path,
        size: bytes,
        mode: executable ? 0o755 : 0o644,
        mtime: new Date(0),
        uid: 0,
        gid: 0,
        uname: "",
        gname: "",
      };
      await pipeline(createReadStream(file), archive.entry(header));
    }
    archive.finalize();
  };
  write().catch((error: Error) => archive.destroy(error));
  return Readable.from(archive);
}

/** A regular file's content, opened without following a link at its name. Throws when it is no such file. */
export async function openRegularFile(path: string): Promise<{ bytes: number; content: Readable }> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const stats = await file.stat();
  if (stats.isFile()) return { bytes: stats.size, content: file.createReadStream() };
  await file.close();
  throw new Error("no regular file");
}
