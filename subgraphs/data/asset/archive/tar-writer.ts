import type { ArchiveEntry } from "./entry.ts";
import { TAR_BLOCK_BYTES } from "./tar-header.ts";

const NAME_BYTES = 100;
const ZEROS = Buffer.alloc(TAR_BLOCK_BYTES);

/**
 * Writes entries as a tar that depends on their paths, order, content and executable bit alone: no owner, no time, no
 * mode beyond that. The same tree packed by the same tool is the same bytes, and is stored once.
 */
export async function* writeTar(entries: AsyncIterable<ArchiveEntry>): AsyncGenerator<Buffer, void, undefined> {
  for await (const entry of entries) {
    const path = entry.kind === "folder" ? `${entry.path}/` : entry.path;
    if (Buffer.byteLength(path) > NAME_BYTES) {
      const record = paxRecord("path", path);
      yield Buffer.concat([header("PaxHeader", record.length, 0o644, "x"), record, padding(record.length)]);
    }
    const mode = entry.kind === "folder" || entry.executable ? 0o755 : 0o644;
    yield header(path, entry.bytes, mode, entry.kind === "folder" ? "5" : "0");
    for await (const chunk of entry.content) yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const rest = padding(entry.bytes);
    if (rest.length > 0) yield rest;
  }
  yield Buffer.alloc(2 * TAR_BLOCK_BYTES);
}

function header(path: string, size: number, mode: number, type: string): Buffer {
  const block = Buffer.alloc(TAR_BLOCK_BYTES);
  // Cut where it is too long: the pax record before this header has the whole path.
  Buffer.from(path, "utf8").copy(block, 0, 0, NAME_BYTES);
  octal(block, 100, 8, mode);
  octal(block, 108, 8, 0);
  octal(block, 116, 8, 0);
  octal(block, 124, 12, size);
  octal(block, 136, 12, 0);
  block.fill(0x20, 148, 156);
  block.write(type, 156, "latin1");
  block.write("ustar\x0000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

function octal(block: Buffer, start: number, length: number, value: number): void {
  block.write(`${value.toString(8).padStart(length - 1, "0")}\0`, start, "latin1");
}

function padding(size: number): Buffer {
  const over = size % TAR_BLOCK_BYTES;
  return over === 0 ? ZEROS.subarray(0, 0) : ZEROS.subarray(over);
}

/** `length key=value\n`, where the length counts its own digits. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length = rest + String(length).length;
  return Buffer.from(`${length} ${key}=${value}\n`, "utf8");
}
