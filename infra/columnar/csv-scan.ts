import { open } from "node:fs/promises";
import { ColumnarFailure } from "./task.ts";

export type LineEnd = "\n" | "\r\n" | "\r";

export interface CsvScanOptions {
  /** Longest record, without its line end; a longer one is a failure `limit`. */
  readonly recordBytes: number;
  /** Whether a line without anything is a record. */
  readonly blankIsRecord: boolean;
  /** The only line end that there may be; else whatever the first record ends with. */
  readonly lineEnd?: LineEnd;
}

export interface CsvScan {
  /** With the header, where there is one. */
  readonly records: number;
  /** Null where no record has one. */
  readonly lineEnd: LineEnd | null;
}

const CHUNK_BYTES = 1024 * 1024;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Counts the records of a CSV file. The engine passes over a last record that does not fit into its buffer, and takes the
 * first line break for the file's own even in a quoted name; it is only believed where it counts the same as this.
 * Fails with `limit`, or with `unreadable` where line ends differ or a quote is not closed.
 */
export async function scanCsv(file: string, options: CsvScanOptions, chunkBytes = CHUNK_BYTES): Promise<CsvScan> {
  await using handle = await open(file);
  const scanner = new CsvScanner(options);
  const buffer = Buffer.alloc(chunkBytes);
  let first = true;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, chunkBytes, null);
    if (bytesRead === 0) return scanner.end();
    const chunk = buffer.subarray(0, bytesRead);
    scanner.add(first && chunk.indexOf(BYTE_ORDER_MARK) === 0 ? chunk.subarray(BYTE_ORDER_MARK.length) : chunk);
    first = false;
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const SPACE = 0x20;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;

/** Where the bytes so far end. */
const AT = {
  /** At a field's first byte. */
  start: 0,
  /** After the one space that the engine lets stand before a quote. */
  space: 1,
  /** In a field without quotes, or behind one with them; a quote is a character here. */
  plain: 2,
  quoted: 3,
  /** After a quote in a quoted field: it closes the field, unless another one follows. */
  quote: 4,
  /** After a return, which a line feed may follow. */
  return: 5,
} as const;

class CsvScanner {
  readonly #options: CsvScanOptions;
  #at: (typeof AT)[keyof typeof AT] = AT.start;
  #lineEnd: LineEnd | null = null;
  #records = 0;
  /** Bytes of the record that began in an earlier chunk. */
  #carried = 0;

  constructor(options: CsvScanOptions) {
    this.#options = options;
    this.#lineEnd = options.lineEnd ?? null;
  }

  add(chunk: Buffer): void {
    const length = chunk.length;
    let at = this.#at;
    /** Where the record begins; before the chunk for one that was carried over. */
    let begin = -this.#carried;
    let i = 0;
    while (i < length) {
      if (at === AT.quoted) {
        while (i < length && chunk[i] !== QUOTE) i++;
        if (i++ < length) at = AT.quote;
        continue;
      }
      if (at === AT.plain) while (i < length && isPlain(chunk[i]!)) i++;
      if (i === length) break;
      const byte = chunk[i++]!;
      if (at === AT.return) {
        this.#end(i - 2 - begin, byte === LINE_FEED ? "\r\n" : "\r");
        if (byte !== LINE_FEED) i--; // of the next record
        begin = i;
        at = AT.start;
      } else if (byte === LINE_FEED) {
        this.#end(i - 1 - begin, "\n");
        begin = i;
        at = AT.start;
      } else if (byte === RETURN) at = AT.return;
      else if (byte === COMMA) at = AT.start;
      else if (byte === QUOTE && at !== AT.plain) at = AT.quoted;
      else at = byte === SPACE && at === AT.start ? AT.space : AT.plain;
    }
    this.#at = at;
    this.#carried = length - begin;
    this.#requireLength(this.#carried - (at === AT.return ? 1 : 0));
  }

  end(): CsvScan {
    if (this.#at === AT.quoted) throw new ColumnarFailure({ reason: "unreadable" });
    if (this.#at === AT.return) this.#end(this.#carried - 1, "\r");
    else if (this.#carried > 0) this.#records++;
    return { records: this.#records, lineEnd: this.#lineEnd };
  }

  #end(bytes: number, lineEnd: LineEnd): void {
    this.#requireLength(bytes);
    this.#lineEnd ??= lineEnd;
    if (lineEnd !== this.#lineEnd) throw new ColumnarFailure({ reason: "unreadable" });
    if (bytes > 0 || this.#options.blankIsRecord) this.#records++;
  }

  #requireLength(bytes: number): void {
    if (bytes > this.#options.recordBytes) throw new ColumnarFailure({ reason: "limit", limit: "recordBytes" });
  }
}

function isPlain(byte: number): boolean {
  return byte > COMMA || (byte !== COMMA && byte !== LINE_FEED && byte !== RETURN);
}
