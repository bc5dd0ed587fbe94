import { Refused } from "../../../infra/kernel/refusal.ts";
import { ASSET } from "./asset.refusals.ts";

/** Bytes as they come in, from one stream or several: counted, limited, and asked how they failed. */
export class ByteMeter {
  bytes = 0;
  /** What a stream failed with by itself, such as a sender that went away; not a refusal of ours. */
  failure: unknown = null;
  readonly #maxBytes: number;
  readonly #onBytes: (bytes: number) => Promise<void>;

  /** @param onBytes is waited for after each piece */
  constructor(maxBytes: number, onBytes: (bytes: number) => Promise<void> = async () => {}) {
    this.#maxBytes = maxBytes;
    this.#onBytes = onBytes;
  }

  /** The same bytes; refused as `asset_too_large` as soon as all streams together have more than allowed. */
  async *through(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of this.#watched(stream)) {
      this.bytes += chunk.length;
      if (this.bytes > this.#maxBytes) throw tooLarge(this.#maxBytes);
      await this.#onBytes(this.bytes);
      yield chunk;
    }
  }

  async *#watched(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* stream;
    } catch (error) {
      if (!(error instanceof Refused)) this.failure = error;
      throw error;
    }
  }
}

/** For content that is known to be too large before, or found to be while it comes. */
export function tooLarge(maxBytes: number): Refused {
  return new Refused(ASSET.asset_too_large, {
    message: `One upload or import may have ${maxBytes} bytes.`,
    extra: { max_import_bytes: maxBytes },
  });
}
