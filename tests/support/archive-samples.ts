import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { gzipSync, zstdCompressSync } from "node:zlib";
import tarStream from "tar-stream";
import yazl from "yazl";
import type { ArchiveKind } from "../../subgraphs/data/asset/archive/entry.ts";

/** Makes archives for tests with the tools that customers use, good ones and bad ones. */
export interface Sample {
  path: string;
  content?: string | Uint8Array;
  executable?: boolean;
  type?: "file" | "directory" | "symlink" | "link" | "character-device" | "block-device" | "fifo";
}

export async function tarOf(samples: readonly Sample[]): Promise<Buffer> {
  const pack = tarStream.pack();
  for (const { path, content = "", executable, type = "file" } of samples) {
    const mode = executable ? 0o755 : 0o644;
    const linkname = type === "link" || type === "symlink" ? "/etc/passwd" : undefined;
    if (type === "file") pack.entry({ name: path, mode, mtime: new Date() }, Buffer.from(content));
    else pack.entry({ name: path, type, mode, ...(linkname ? { linkname } : {}) });
  }
  pack.finalize();
  return all(pack as AsyncIterable<Uint8Array>);
}

export async function zipOf(samples: readonly Sample[]): Promise<Buffer> {
  const zip = new yazl.ZipFile();
  for (const { path, content = "", executable, type = "file" } of samples) {
    const mode = type === "symlink" ? 0o120777 : executable ? 0o100755 : 0o100644;
    if (type === "directory") zip.addEmptyDirectory(path);
    else zip.addBuffer(Buffer.from(content), path, { mode });
  }
  zip.end();
  return all(zip.outputStream as AsyncIterable<Uint8Array>);
}

export async function archiveOf(kind: ArchiveKind, samples: readonly Sample[]): Promise<Buffer> {
  if (kind === "zip") return zipOf(samples);
  const tar = await tarOf(samples);
  return kind === "tar" ? tar : kind === "tar.gz" ? gzipSync(tar) : zstdCompressSync(tar);
}

/** What GNU tar makes of a folder. */
export async function gnuTarOf(folder: string, format: "gnu" | "pax" | "ustar"): Promise<Buffer> {
  const { stdout } = await promisify(execFile)("tar", [`--format=${format}`, "-C", folder, "-cf", "-", "."], {
    encoding: "buffer",
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

/** The entries of a tar, as another reader sees them. */
export async function entriesIn(
  tar: Uint8Array,
): Promise<{ path: string; type: string; mode: number; content: Buffer }[]> {
  const extract = tarStream.extract();
  extract.end(Buffer.from(tar));
  const found = [];
  for await (const entry of extract) {
    const { name, type, mode } = entry.header;
    found.push({
      path: name,
      type: type ?? "",
      mode: mode ?? 0,
      content: await all(entry as AsyncIterable<Uint8Array>),
    });
  }
  return found;
}

export async function all(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Bytes in pieces of any size, as a network hands them over. */
export async function* inPieces(bytes: Uint8Array, size = 10_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
