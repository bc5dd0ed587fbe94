import { statfs } from "node:fs/promises";
import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Whether there is room for what begins now. What runs already may use up the reserve. */
export interface StorageSpace {
  /** Why nothing new should begin, for the caller; null while there is room. */
  shortage(): Promise<string | null>;
}

/** Of a process that keeps nothing on a disk of its own. */
export const ELSEWHERE: StorageSpace = { shortage: async () => null };

/** Room is where all of several have some; what the first without any says is told. */
export function everySpace(spaces: readonly StorageSpace[]): StorageSpace {
  return {
    shortage: async () => {
      const answers = await Promise.all(spaces.map((space) => space.shortage()));
      return answers.find((answer) => answer !== null) ?? null;
    },
  };
}

export interface DiskSpaceSettings {
  /** A folder on the file system that fills up. */
  folder: string;
  /** Less than this free is a shortage; zero for none. */
  reserveBytes: number;
  clock: Pick<Clock, "monotonicMs">;
  logger: Pick<Logger, "warn" | "info">;
}

/** How long one look at the file system holds. */
const LOOK_HOLDS_MS = 1_000;
const MIB = 1024 * 1024;

/** Watches the file system that a folder lies on. It looks when it is asked, and tells the log when the answer turns. */
export class DiskSpace implements StorageSpace {
  readonly #settings: DiskSpaceSettings;
  #look: { atMs: number; answer: Promise<string | null> } | null = null;
  #short = false;

  constructor(settings: DiskSpaceSettings) {
    this.#settings = settings;
  }

  shortage(): Promise<string | null> {
    const nowMs = this.#settings.clock.monotonicMs();
    if (!this.#look || nowMs - this.#look.atMs >= LOOK_HOLDS_MS) this.#look = { atMs: nowMs, answer: this.#ask() };
    return this.#look.answer;
  }

  async #ask(): Promise<string | null> {
    const { folder, reserveBytes, logger } = this.#settings;
    const { bavail, bsize } = await statfs(folder);
    const freeBytes = bavail * bsize;
    const short = freeBytes < reserveBytes;
    if (short !== this.#short) {
      if (short) logger.warn({ freeBytes, reserveBytes }, "the disk is nearly full: no new work is admitted");
      else logger.info({ freeBytes, reserveBytes }, "the disk has room again: new work is admitted");
    }
    this.#short = short;
    if (!short) return null;
    return `The platform's disk is nearly full: ${Math.floor(freeBytes / MIB)} MiB are free, and ${Math.floor(reserveBytes / MIB)} MiB are kept for work that runs already.`;
  }
}
