import type { Job, Queue, Worker } from "bullmq";

/** What BullMQ stores of one of our jobs. */
export type StoredJob = Job<unknown, unknown, string>;

/** The store under BullMQ. Nothing outside this folder knows which one it is. */
export interface QueueBackend {
  readonly kind: "postgres" | "redis";
  /** Opens the adding side of a queue. Adding fails within seconds while the store cannot be reached. */
  openQueue(name: string): Queue;
  /** Opens the taking side of a queue; it does not start by itself and rides out losses of the store. */
  openWorker(name: string, run: (job: StoredJob, token: string) => Promise<unknown>, options: WorkerSettings): Worker;
  /** Resolves when the store answers; rejects with the reason otherwise. */
  ping(): Promise<void>;
  /** Closes what the backend itself opened; queues and workers are closed by who opened them. */
  close(): Promise<void>;
}

export interface WorkerSettings {
  concurrency: number;
  /** After this long without a sign of life a worker's jobs go to another one. */
  lockMs: number;
  /** Wait before the next run, by the number of runs that failed. */
  backoffMs(failures: number): number;
}

/** A dead worker is noticed at the second look after its lock has run out, so there are several looks to a lock. */
const LOOKS_PER_LOCK = 5;
/** How often a job may be taken over from dead workers before it counts as the killer of them. */
const MAX_TAKEOVERS = 100;
/** Longest that an idle worker waits without looking, should a notification be lost. */
export const IDLE_CHECK_SECONDS = 5;
/** Pause before a worker tries a lost store again. */
export const STORE_RETRY_MS = 500;
/** BullMQ's own event stream, which nothing here reads, is kept this short. */
export const KEPT_EVENTS = 256;

/** Options of every worker, whatever the store. */
export function workerOptions(settings: WorkerSettings) {
  return {
    autorun: false,
    concurrency: settings.concurrency,
    lockDuration: settings.lockMs,
    stalledInterval: Math.ceil(settings.lockMs / LOOKS_PER_LOCK),
    maxStalledCount: MAX_TAKEOVERS,
    drainDelay: IDLE_CHECK_SECONDS,
    runRetryDelay: STORE_RETRY_MS,
    settings: { backoffStrategy: (failures: number) => settings.backoffMs(failures) },
  };
}
