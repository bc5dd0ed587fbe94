import { type FileHandle, open } from "node:fs/promises";
import { ColumnarFailure, type TableLimits } from "./task.ts";

/** One column of one row group: where its pages lie, one after the other. */
export interface ColumnChunk {
  readonly offset: number;
  readonly bytes: number;
}

/** What a page's header is read with at first; one with long statistics is read again with more. */
const HEADER_BYTES = 512;

/** Fails when a page, as it is decoded, is larger than a record may be: the engine holds a page as a whole. */
export async function requirePages(file: string, chunks: readonly ColumnChunk[], limits: TableLimits): Promise<void> {
  await using handle = await open(file);
  for (const { offset, bytes } of chunks) {
    const end = offset + bytes;
    for (let at = offset; at < end; ) {
      const { headerBytes, decodedBytes, storedBytes } = await pageAt(handle, at, limits.recordBytes);
      if (decodedBytes > limits.recordBytes)
        throw new ColumnarFailure({ reason: "limit", limit: "recordBytes", count: decodedBytes });
      at += headerBytes + storedBytes;
    }
  }
}

interface Page {
  headerBytes: number;
  decodedBytes: number;
  storedBytes: number;
}

async function pageAt(handle: FileHandle, offset: number, maxBytes: number): Promise<Page> {
  for (let size = HEADER_BYTES; ; size = maxBytes) {
    const buffer = Buffer.alloc(size);
    const { bytesRead } = await handle.read(buffer, 0, size, offset);
    const page = readHeader(new Compact(buffer.subarray(0, bytesRead)));
    if (page) return page;
    if (size >= maxBytes || bytesRead < size) throw new ColumnarFailure({ reason: "unreadable" });
  }
}

/** Numbers of the header's fields. */
const DECODED_BYTES = 2;
const STORED_BYTES = 3;

/** Null when the header goes on beyond the buffer. */
function readHeader(from: Compact): Page | null {
  const sizes = new Map<number, number>();
  try {
    from.struct((field, value) => sizes.set(field, value));
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
  const [decodedBytes, storedBytes] = [sizes.get(DECODED_BYTES) ?? -1, sizes.get(STORED_BYTES) ?? -1];
  if (decodedBytes < 0 || storedBytes < 0) throw new ColumnarFailure({ reason: "unreadable" });
  return { headerBytes: from.position, decodedBytes, storedBytes };
}

/** Types of Thrift's compact protocol. */
const TYPE = {
  stop: 0,
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  set: 10,
  struct: 12,
};
const MOST_NESTED = 16;

/** Reads Thrift's compact protocol. Throws `RangeError` at the buffer's end. */
class Compact {
  position = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Passes over a struct; tells the whole numbers among its own fields. */
  struct(told: (field: number, value: number) => void = () => {}, depth = 0): void {
    if (depth > MOST_NESTED) throw new ColumnarFailure({ reason: "unreadable" });
    for (let field = 0; ; ) {
      const head = this.#byte();
      const type = head & 15;
      if (type === TYPE.stop) return;
      field = head >> 4 === 0 ? zigzag(this.#varint()) : field + (head >> 4);
      const value = this.#value(type, depth);
      if (value !== null) told(field, value);
    }
  }

  #value(type: number, depth: number): number | null {
    switch (type) {
      case TYPE.true:
      case TYPE.false:
        return null; // the type is the value
      case TYPE.byte:
        return this.#byte();
      case TYPE.i16:
      case TYPE.i32:
      case TYPE.i64:
        return zigzag(this.#varint());
      case TYPE.double:
        return this.#skip(8);
      case TYPE.binary:
        return this.#skip(this.#varint());
      case TYPE.list:
      case TYPE.set:
        return this.#list(depth);
      case TYPE.struct:
        this.struct(undefined, depth + 1);
        return null;
      default:
        throw new ColumnarFailure({ reason: "unreadable" });
    }
  }

  #list(depth: number): null {
    const head = this.#byte();
    const count = head >> 4 === 15 ? this.#varint() : head >> 4;
    const type = head & 15;
    for (let i = 0; i < count; i++) {
      if (type === TYPE.true || type === TYPE.false) this.#byte();
      else this.#value(type, depth + 1);
    }
    return null;
  }

  #skip(bytes: number): null {
    this.position += bytes;
    if (this.position > this.#bytes.length) throw new RangeError("beyond the end");
    return null;
  }

  #byte(): number {
    return this.#bytes.readUInt8(this.position++);
  }

  /** Up to 53 bits, which no honest size exceeds. */
  #varint(): number {
    let value = 0;
    for (let factor = 1; factor <= 2 ** 49; factor *= 128) {
      const byte = this.#byte();
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
    throw new ColumnarFailure({ reason: "unreadable" });
  }
}

function zigzag(value: number): number {
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}
