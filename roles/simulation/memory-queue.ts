import type { Clock } from "../../infra/kernel/clock.ts";
import { backoffMs, JOB_BACKOFF } from "../../infra/queue/backoff.ts";
import type { JobToPublish } from "../../infra/queue/connection.ts";
import type { Chance } from "./chance.ts";
import type { HappeningCounter } from "./happenings.ts";

/** A job that lies in the queue. */
export interface QueuedJob extends JobToPublish {
  /** 1 for the first run. */
  attempt: number;
}

/** How a run ended, for the queue; `lost` is the end of a process that died with it. */
export type RunEnd = "over" | "again" | "elsewhere" | "lost";

export interface MemoryQueueOptions {
  /** Of no process: the queue outlives them. */
  clock: Clock;
  chance: Chance;
  /** Runs a job in some process; null when none lives. */
  run(job: QueuedJob): Promise<RunEnd> | null;
  count: HappeningCounter["count"];
}

/** How badly a queue behaves, each as a chance in [0, 1]. */
export interface QueueFaults {
  /** A job is delivered a second time a while later. */
  duplicate: number;
  /** A job is never delivered. */
  loss: number;
  /** Longest time that a job lies there, milliseconds. */
  longestDelayMs: number;
}

/** After this long a run of a process that died is given to another one. */
const STALLED_MS = 15_000;
/** Jobs that a flood is made of, and how long it takes. */
const LATEST = 30;
const FLOOD_MS = 2_000;

/**
 * The doorbell of a simulated world: jobs are delivered in an order that chance decides, some of them twice, some late,
 * some never, and all that lie in it may vanish at once.
 */
export class MemoryQueue {
  readonly faults: QueueFaults = { duplicate: 0, loss: 0, longestDelayMs: 50 };
  /** Ids of all jobs that were ever put in, whatever became of them. */
  readonly published = new Set<string>();
  readonly #options: MemoryQueueOptions;
  readonly #ids = new Set<string>();
  /** Jobs that were put in last. */
  readonly #latest: JobToPublish[] = [];
  /** Rises with every flush: what was put in before is gone. */
  #age = 0;

  constructor(options: MemoryQueueOptions) {
    this.#options = options;
  }

  /** Jobs that wait or run. */
  get size(): number {
    return this.#ids.size;
  }

  /** Takes jobs in, as the relay's port to the queue. Equal ids are taken once while the first is there. */
  readonly publish = async (jobs: readonly JobToPublish[]): Promise<void> => {
    const { chance, count } = this.#options;
    for (const job of jobs.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
      this.published.add(job.id);
      if (this.#ids.has(job.id)) continue;
      if (chance.happens(this.faults.loss)) {
        count("queue", `lost ${job.definition.name}`);
        continue;
      }
      this.#ids.add(job.id);
      if (this.#latest.push(job) > LATEST) this.#latest.shift();
      void this.#deliver({ ...job, attempt: 1 }, chance.between(1, this.faults.longestDelayMs));
      if (!chance.happens(this.faults.duplicate)) continue;
      count("queue", `doubled ${job.definition.name}`);
      void this.#deliver({ ...job, attempt: 1 }, chance.between(0, 20 * this.faults.longestDelayMs));
    }
  };

  /** Everything in it is gone. */
  flush(): void {
    if (this.#ids.size > 0) this.#options.count("queue", "emptied");
    this.#age++;
    this.#ids.clear();
  }

  /** The jobs that were put in last, done or not, are delivered so many times more. */
  flood(times: number): void {
    const { chance, count } = this.#options;
    for (const job of this.#latest)
      for (let n = 0; n < times; n++) void this.#deliver({ ...job, attempt: 1 }, chance.between(0, FLOOD_MS));
    if (this.#latest.length > 0) count("queue", "flooded");
  }

  async #deliver(job: QueuedJob, afterMs: number): Promise<void> {
    const { clock, chance, run } = this.#options;
    const age = this.#age;
    await clock.sleep(afterMs);
    if (age !== this.#age) return;
    const running = run(job);
    const end = running === null ? "elsewhere" : await running;
    if (age !== this.#age) return;
    if (end === "lost") return this.#deliver(job, STALLED_MS);
    if (end === "elsewhere") return this.#deliver(job, 1_000);
    if (end === "again" && job.attempt < job.definition.attempts)
      return this.#deliver({ ...job, attempt: job.attempt + 1 }, backoffMs(JOB_BACKOFF, job.attempt, chance.number));
    this.#ids.delete(job.id);
  }
}
