/**
 * Wake-ups tell sleepers that rows may have changed. They carry a topic and no data, so one that comes twice is harmless
 * and one that is lost costs at most the sleeper's next look.
 */
export interface Wakeups {
  /** Calls `f` whenever the topic is announced, in this process or another. Returns what ends that. */
  on(topic: string, f: () => void): () => void;
  /** Wakes this process at once and the others within milliseconds. Call it after the commit. Never throws. */
  announce(topic: string): void;
  /** False while other processes' wake-ups cannot arrive: sleepers should look more often. */
  readonly healthy: boolean;
  /** How many callbacks are waiting; for tests and metrics. */
  readonly listeners: number;
  close(): Promise<void>;
}

/** Stands for every topic, when a message cannot name them all. */
export const EVERY_TOPIC = "*";

/** Callbacks by topic: the part of wake-ups that stays within the process. */
export class Sleepers {
  readonly #byTopic = new Map<string, Set<() => void>>();
  readonly #onError: (error: unknown) => void;
  #count = 0;

  /** @param onError takes what a callback threw; the others are still called */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  get count(): number {
    return this.#count;
  }

  on(topic: string, f: () => void): () => void {
    const sleeper = () => f(); // the same function may wait twice
    const together = this.#byTopic.get(topic) ?? new Set();
    this.#byTopic.set(topic, together);
    together.add(sleeper);
    this.#count++;
    return () => {
      if (!together.delete(sleeper)) return;
      this.#count--;
      if (together.size === 0 && this.#byTopic.get(topic) === together) this.#byTopic.delete(topic);
    };
  }

  wake(topic: string): void {
    if (topic === EVERY_TOPIC) this.wakeAll();
    else for (const sleeper of [...(this.#byTopic.get(topic) ?? [])]) this.#call(sleeper);
  }

  wakeAll(): void {
    for (const sleepers of [...this.#byTopic.values()]) for (const sleeper of [...sleepers]) this.#call(sleeper);
  }

  #call(sleeper: () => void): void {
    try {
      sleeper();
    } catch (error) {
      this.#onError(error);
    }
  }
}
