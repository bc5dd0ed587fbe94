import { Transform, type TransformCallback } from "node:stream";
import { ExportFailure } from "./export-failure.ts";

const QUOTE = 0x22;
const LINE_FEED = 0x0a;

export interface ResultLimits {
  readonly rows: number;
  readonly bytes: number;
}

/** Counts the records and bytes of CSV that passes through, and breaks off at either limit. */
export class RecordCounter extends Transform {
  /** Records that ended, without the header. */
  rows: number;
  bytes = 0;
  readonly #limits: ResultLimits;
  #quoted = false;

  constructor(limits: ResultLimits, { header }: { header: boolean }) {
    super();
    this.#limits = limits;
    this.rows = header ? -1 : 0;
  }

  /** Most bytes that pass through. */
  get maxBytes(): number {
    return this.#limits.bytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.bytes += chunk.length;
    this.#count(chunk);
    const { rows, bytes } = this.#limits;
    // The records are the query's: the team may know how many there were.
    if (this.rows > rows)
      done(new ExportFailure("row_limit", `The query has more than ${rows} rows; ${this.rows} had come.`));
    else if (this.bytes > bytes)
      done(
        new ExportFailure(
          "byte_limit",
          `The result has more than ${bytes} bytes as CSV; ${Math.max(this.rows, 0)} rows had come.`,
        ),
      );
    else done(null, chunk);
  }

  /** A line feed within quotes is part of a value; a quote within quotes is there twice, so it changes nothing. */
  #count(chunk: Buffer): void {
    let quoted = this.#quoted;
    let rows = 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i];
      if (byte === QUOTE) quoted = !quoted;
      else if (byte === LINE_FEED && !quoted) rows++;
    }
    this.#quoted = quoted;
    this.rows += rows;
  }
}
