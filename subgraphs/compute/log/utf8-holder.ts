import { StringDecoder } from "node:string_decoder";

/** Longest beginning of a UTF-8 character that is not yet a whole one. */
export const HELD_BYTES = 3;

/**
 * Turns pieces of a byte stream into text that is whole at every cut: a character that a cut goes through belongs to the
 * piece that ends it. Bytes that are no UTF-8 become U+FFFD.
 */
export class Utf8Holder {
  readonly #decoder = new StringDecoder("utf8");

  /** @param before the bytes before the first piece; the last three are enough */
  constructor(before: Uint8Array = new Uint8Array()) {
    this.#decoder.write(Buffer.from(before.subarray(Math.max(0, before.length - HELD_BYTES))));
  }

  text(piece: Uint8Array): string {
    return this.#decoder.write(Buffer.from(piece.buffer, piece.byteOffset, piece.length));
  }

  /** What a stream that ends here leaves of an unfinished character. */
  end(): string {
    return this.#decoder.end();
  }
}
