import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type ObjectStore, StorageFull } from "./object-store.ts";
import type { StorageSpace } from "./storage-space.ts";

export interface BucketSpaceSettings {
  store: Pick<ObjectStore, "ping">;
  clock: Pick<Clock, "monotonicMs">;
  logger: Pick<Logger, "warn" | "info">;
}

/** How long one look at the bucket holds. */
const LOOK_HOLDS_MS = 15_000;
/** What a look tries to put there: little, but more than what is left over where results do not fit any more. */
const PROBE_BYTES = 1024 * 1024;

const FULL = "The platform's object store has no space left.";

/**
 * Tries whether a bucket takes bytes, which is all that a bucket tells of its space. It looks when it is asked, but nobody
 * waits for the store: the answer is what the last look found, and room before the first. A look that gets no answer
 * changes nothing, since that says nothing of space. It tells the log when the answer turns.
 */
export class BucketSpace implements StorageSpace {
  readonly #settings: BucketSpaceSettings;
  #lookedAtMs: number | null = null;
  #look: Promise<void> | null = null;
  #full = false;

  constructor(settings: BucketSpaceSettings) {
    this.#settings = settings;
  }

  async shortage(): Promise<string | null> {
    const nowMs = this.#settings.clock.monotonicMs();
    const isOld = this.#lookedAtMs === null || nowMs - this.#lookedAtMs >= LOOK_HOLDS_MS;
    if (isOld && this.#look === null) this.#look = this.#ask(nowMs);
    return this.#full ? FULL : null;
  }

  /** Resolves when no look is under way. */
  async settled(): Promise<void> {
    await this.#look;
  }

  async #ask(nowMs: number): Promise<void> {
    try {
      await this.#settings.store.ping(PROBE_BYTES);
      this.#tell(false);
    } catch (err) {
      if (err instanceof StorageFull) this.#tell(true);
      else this.#settings.logger.warn({ err }, "the space of the object store could not be looked at");
    } finally {
      this.#lookedAtMs = nowMs;
      this.#look = null;
    }
  }

  #tell(full: boolean): void {
    const { logger } = this.#settings;
    if (full && !this.#full) logger.warn({}, "the object store is full: no new work is admitted");
    if (!full && this.#full) logger.info({}, "the object store has room again: new work is admitted");
    this.#full = full;
  }
}
