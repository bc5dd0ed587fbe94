import { setTimeout as sleep } from "node:timers/promises";
import { PlatformLost } from "./client.ts";
import { note } from "./progress.ts";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
/** How long a platform may stay away before a command that follows something gives up. */
export const GIVE_UP_AFTER_MS = 5 * 60_000;
/** A stream that lived this long after it was taken up again was well: its end is another loss. */
const STEADY_MS = 10_000;

/** What `Patience` needs of the world. */
export interface PatienceWorld {
  tell(sentence: string): void;
  /** Milliseconds since any fixed moment. */
  nowMs(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<unknown>;
  /** What the person can do once it was given up, as the end of a sentence. */
  readonly later: string;
}

const REAL: PatienceWorld = {
  tell: note,
  nowMs: () => performance.now(),
  sleep: (ms, signal) => sleep(ms, undefined, { signal }),
  later: "run the command again later",
};

/**
 * Bears the loss of the platform, or of a part of it, for `GIVE_UP_AFTER_MS`: pauses grow from attempt to attempt, and
 * each loss is told once. A refusal is not borne.
 */
export class Patience {
  readonly #world: PatienceWorld;
  #lostAtMs: number | null = null;
  #backAtMs: number | null = null;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(world: Partial<PatienceWorld> = {}) {
    this.#world = { ...REAL, ...world };
  }

  /** What was waited for came: all is well. */
  answered(): void {
    this.#lostAtMs = null;
    this.#backAtMs = null;
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  /**
   * Pauses after `error`, so that the caller may try again. Throws it when it is no loss, and `PlatformLost` when the
   * loss has lasted too long. `signal` ends the pause early.
   */
  async bear(error: unknown, signal?: AbortSignal): Promise<void> {
    if (!(error instanceof PlatformLost)) throw error;
    const now = this.#world.nowMs();
    if (this.#backAtMs !== null && now - this.#backAtMs >= STEADY_MS) this.answered();
    this.#backAtMs = null;
    const minutes = GIVE_UP_AFTER_MS / 60_000;
    if (this.#lostAtMs === null) {
      this.#lostAtMs = now;
      this.#world.tell(`${error.message} Trying again for up to ${minutes} minutes.`);
    }
    if (now - this.#lostAtMs >= GIVE_UP_AFTER_MS)
      throw new PlatformLost(`${error.message} It has been away for ${minutes} minutes: ${this.#world.later}.`);
    await this.#world.sleep(this.#pauseMs, signal).catch(ignoreAbort);
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }

  /**
   * What became of a request that may be repeated: when its answer is lost it is asked again, for the platform may have
   * done it. One that never got there is thrown at once.
   */
  async answerTo<T>(request: () => Promise<T>): Promise<{ answer: T; isRepeated: boolean }> {
    try {
      return { answer: await request(), isRepeated: false };
    } catch (error) {
      if (error instanceof PlatformLost && error.isUnsent) throw error;
      await this.bear(error);
    }
    return { answer: await this.through(request), isRepeated: true };
  }

  /** Repeats `work` until the platform answers it. It must be safe to repeat. */
  async through<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (;;) {
      try {
        const result = await work();
        this.#backAtMs = this.#world.nowMs();
        return result;
      } catch (error) {
        if (signal?.aborted) throw error;
        await this.bear(error, signal);
      }
    }
  }
}

/** What a stream that ended without having said that it is complete is taken for. */
export function brokenStream(): PlatformLost {
  return new PlatformLost("The stream ended early.");
}

function ignoreAbort(error: Error): void {
  if (error.name !== "AbortError") throw error; // told to stop: whoever waits looks at the signal
}
