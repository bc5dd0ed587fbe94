import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import {
  type ByteRange,
  clampRange,
  type ObjectStore,
  ObjectTooLarge,
  type OpenObject,
  type PutTerms,
  requireObjectName,
  type StoredObject,
} from "../../infra/objects/object-store.ts";

/** Where logs go, in memory: a simulated world waits for no disk. */
export class MemoryStore implements Pick<ObjectStore, "put" | "open" | "has"> {
  readonly #objects = new Map<string, Buffer>();

  /** Names of all objects. */
  get names(): string[] {
    return [...this.#objects.keys()];
  }

  async put(source: AsyncIterable<Uint8Array>, { maxBytes, claim }: PutTerms): Promise<StoredObject> {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new ObjectTooLarge(maxBytes);
      chunks.push(chunk);
    }
    const whole = Buffer.concat(chunks);
    const sha256 = createHash("sha256").update(whole).digest("hex");
    await claim?.({ sha256, bytes });
    this.#objects.set(sha256, whole);
    return { sha256, bytes };
  }

  async has(sha256: string): Promise<boolean> {
    return this.#objects.has(sha256);
  }

  async open(sha256: string, range?: ByteRange): Promise<OpenObject | null> {
    requireObjectName(sha256);
    const whole = this.#objects.get(sha256);
    if (!whole) return null;
    const clamped = clampRange(range, whole.length);
    const part = clamped ? whole.subarray(clamped.start, clamped.end + 1) : Buffer.alloc(0);
    const stream = Readable.from(part.length > 0 ? [part] : []);
    return { stream, bytes: whole.length, streamBytes: part.length };
  }
}
