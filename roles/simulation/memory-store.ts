import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import type { Clock } from "../../infra/kernel/clock.ts";
import {
  type ByteRange,
  clampRange,
  type ListedObject,
  type ListingPage,
  type ObjectStore,
  ObjectTooLarge,
  type OpenObject,
  type PutTerms,
  requireObjectName,
  type StoredObject,
  StoreUnavailable,
} from "../../infra/objects/object-store.ts";
import type { Chance } from "./chance.ts";
import type { HappeningCounter } from "./happenings.ts";

/** What goes wrong at a store, each as a share of the calls that change something. */
export interface StoreMoods {
  /** Nothing is done. */
  refuses: number;
  /** It is done, and said to have failed. */
  losesAnswers: number;
  /** It takes up to `SLOWEST_MS`. */
  slow: number;
}

/** Nothing goes wrong. */
export const READY: StoreMoods = { refuses: 0, losesAnswers: 0, slow: 0 };

const USUAL_MS = 20;
const SLOWEST_MS = 15_000;

export interface MemoryStoreOptions {
  /** Of nobody: what was sent to a store is done, whoever dies meanwhile. */
  clock: Clock;
  chance: Chance;
  count: HappeningCounter["count"];
}

/** Where logs go, in memory: calls take simulated time, and may fail before or after they have taken effect. */
export class MemoryStore implements Pick<ObjectStore, "put" | "open" | "has" | "remove" | "list"> {
  moods: StoreMoods = READY;
  readonly #options: MemoryStoreOptions;
  readonly #objects = new Map<string, { whole: Buffer; storedAt: Date }>();

  constructor(options: MemoryStoreOptions) {
    this.#options = options;
  }

  /** Whether it has an object now; without any time that this takes. */
  holds(sha256: string): boolean {
    return this.#objects.has(sha256);
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
    await this.#change("store", {
      before: async () => claim?.({ sha256, bytes }),
      effect: () => this.#objects.set(sha256, { whole, storedAt: this.#options.clock.now() }),
    });
    return { sha256, bytes };
  }

  async has(sha256: string): Promise<boolean> {
    return this.holds(sha256);
  }

  async open(sha256: string, range?: ByteRange): Promise<OpenObject | null> {
    requireObjectName(sha256);
    const whole = this.#objects.get(sha256)?.whole;
    if (!whole) return null;
    const clamped = clampRange(range, whole.length);
    const part = clamped ? whole.subarray(clamped.start, clamped.end + 1) : Buffer.alloc(0);
    const stream = Readable.from(part.length > 0 ? [part] : []);
    return { stream, bytes: whole.length, streamBytes: part.length };
  }

  remove(sha256: string): Promise<void> {
    return this.#change("remove", { before: async () => {}, effect: () => this.#objects.delete(sha256) });
  }

  async list({ prefix = "", after, limit }: ListingPage): Promise<ListedObject[]> {
    return [...this.#objects]
      .filter(([name]) => name.startsWith(prefix) && name > (after ?? ""))
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .slice(0, limit)
      .map(([sha256, { whole, storedAt }]) => ({ sha256, bytes: whole.length, storedAt }));
  }

  async #change(
    what: "store" | "remove",
    { before, effect }: { before(): Promise<void>; effect(): void },
  ): Promise<void> {
    const { chance, count } = this.#options;
    if (chance.happens(this.moods.refuses)) {
      count("store", `refused to ${what}`);
      throw new StoreUnavailable(`${what} an object`, "simulated");
    }
    await before();
    await this.#takesTime();
    effect();
    count("store", what);
    if (!chance.happens(this.moods.losesAnswers)) return;
    count("store", `answer lost to ${what}`);
    throw new StoreUnavailable(`${what} an object`, "simulated");
  }

  #takesTime(): Promise<void> {
    const { chance, clock, count } = this.#options;
    if (!chance.happens(this.moods.slow)) return clock.sleep(chance.between(0, USUAL_MS));
    count("store", "slow");
    return clock.sleep(chance.between(USUAL_MS, SLOWEST_MS));
  }
}
