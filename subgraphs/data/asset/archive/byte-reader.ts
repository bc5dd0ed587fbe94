/** Reads a stream of chunks by counts of bytes, holding no more than what was asked for and one chunk. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #chunk: Uint8Array = new Uint8Array(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Between 1 and `max` bytes; null at the end. */
  async some(max: number): Promise<Uint8Array | null> {
    while (this.#chunk.length === 0) {
      const next = await this.#source.next();
      if (next.done) return null;
      this.#chunk = next.value;
    }
    const part = this.#chunk.subarray(0, max);
    this.#chunk = this.#chunk.subarray(part.length);
    return part;
  }

  /** Exactly `count` bytes; null when the stream ends before. */
  async exactly(count: number): Promise<Buffer | null> {
    const parts: Uint8Array[] = [];
    for (let missing = count; missing > 0; ) {
      const part = await this.some(missing);
      if (!part) return null;
      parts.push(part);
      missing -= part.length;
    }
    return Buffer.concat(parts, count);
  }

  /** Ends the source. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }
}
