import { WaitingError, type Worker } from "bullmq";
import type { Database } from "../db/database.ts";
import type { Clock } from "../kernel/clock.ts";
import { Turnstile } from "../kernel/turnstile.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { StoredJob } from "./backend.ts";
import { backoffMs, JOB_BACKOFF } from "./backoff.ts";
import type { JobQueue } from "./connection.ts";
import type { JobImplementation } from "./implement-job.ts";
import { quietly } from "./quietly.ts";
import { RunAgain, RunElsewhere, type RunReport, runJob } from "./run-job.ts";

export interface WorkersOptions {
  queue: JobQueue;
  db: Database;
  clock: Clock;
  logger: Logger;
  /** A number in [0, 1), for back-off. */
  random: () => number;
  /** Called after each run, for counters and durations. */
  onRun?: (run: RunReport) => void;
  /** After this long without a sign of life a worker's jobs go to another one; 10 s unless given. */
  lockMs?: number;
}

/** The workers of one process. */
export interface Workers {
  /** Runs in progress. */
  readonly running: number;
  /**
   * Takes no more jobs and waits for the running ones: up to `drainMs` undisturbed, then a little longer with their
   * signals aborted. Runs that end so, or not at all, go back to the queue for another process.
   */
  close(drainMs?: number): Promise<void>;
}

const LOCK_MS = 10_000;
const DRAIN_MS = 20_000;
/** After the signals have been aborted: longer than a run's grace, so that its job can go back to the queue. */
const LAST_WAIT_MS = 4_000;

/**
 * Starts a worker for each queue that the jobs name. It runs as many jobs at once as its definitions allow
 * together; a job at its own limit waits inside, so slow jobs belong in a queue of their own.
 */
export function startWorkers(jobs: readonly JobImplementation[], options: WorkersOptions): Workers {
  const phases = { draining: new AbortController(), stopping: new AbortController() };
  const active = new Set<Promise<unknown>>();
  const byQueue = Map.groupBy(jobs, (job) => job.definition.queue);
  const workers = [...byQueue].map(([name, group]) => startWorker(name, group, options, phases, active));
  let closing: Promise<void> | null = null;
  return {
    get running() {
      return active.size;
    },
    close: (drainMs = DRAIN_MS) => (closing ??= close(workers, active, phases, drainMs, options)),
  };
}

/** How a process ends: it drains, letting runs end, and then stops those that have not. */
interface Phases {
  draining: AbortController;
  stopping: AbortController;
}

function startWorker(
  queueName: string,
  jobs: readonly JobImplementation[],
  options: WorkersOptions,
  { draining, stopping }: Phases,
  active: Set<Promise<unknown>>,
): Worker {
  const { queue, logger, random } = options;
  const environment = { ...options, stopping: stopping.signal };
  const byName = new Map(
    jobs.map((job) => [job.definition.name, { job, turnstile: new Turnstile(job.definition.concurrency) }]),
  );
  if (byName.size !== jobs.length) throw new Error(`a job of queue ${queueName} is implemented twice`);
  const run = async (stored: StoredJob, token: string): Promise<void> => {
    const known = byName.get(stored.name);
    if (!known) {
      logger.error({ job: stored.name, runId: stored.id }, "a job has no implementation in this process");
      throw new RunAgain("not implemented in this process");
    }
    const attempt = stored.attemptsMade + 1;
    const queued = { id: stored.id ?? "", payload: stored.data, attempt, attempts: stored.opts.attempts ?? 1 };
    const ended = known.turnstile.pass(async () => {
      if (draining.signal.aborted) throw new RunElsewhere(); // it was waiting for its slot
      await runJob(known.job, queued, environment);
    });
    active.add(ended);
    try {
      await ended;
    } catch (error) {
      if (!(error instanceof RunElsewhere)) throw error;
      await stored.moveToWait(token);
      throw new WaitingError();
    } finally {
      active.delete(ended);
    }
  };
  const worker = queue.backend.openWorker(queueName, run, {
    concurrency: jobs.reduce((sum, job) => sum + job.definition.concurrency, 0),
    lockMs: options.lockMs ?? LOCK_MS,
    backoffMs: (failures) => backoffMs(JOB_BACKOFF, failures, random),
  });
  worker.on("error", quietly(logger, "a worker reported an error"));
  worker.run().catch((err) => logger.error({ err, queue: queueName }, "a worker stopped"));
  return worker;
}

async function close(
  workers: readonly Worker[],
  active: ReadonlySet<Promise<unknown>>,
  { draining, stopping }: Phases,
  drainMs: number,
  { clock, logger }: WorkersOptions,
): Promise<void> {
  draining.abort();
  const closed = Promise.all(workers.map((worker) => worker.close()));
  if (await within(clock, drainMs, closed)) return;
  stopping.abort(new Error("the process is going down"));
  if (await within(clock, LAST_WAIT_MS, closed)) return;
  logger.warn({ runs: active.size }, "runs did not end in time and are left to other workers");
  await Promise.all(workers.map((worker) => worker.disconnect()));
}

/** Whether `work` ended within `ms`. */
async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  const settled = new AbortController();
  const late = clock.sleep(ms, settled.signal).then(() => false);
  const inTime = await Promise.race([work.then(() => true), late]);
  settled.abort();
  return inTime;
}
