import type { Database } from "../db/database.ts";
import { enqueue } from "../db/outbox.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { JobImplementation, Outcome } from "./implement-job.ts";

/** What every run in a process shares. */
export interface RunEnvironment {
  db: Database;
  clock: Clock;
  logger: Logger;
  /** Aborts when the process wants its runs to end. */
  stopping: AbortSignal;
  onRun?: ((run: RunReport) => void) | undefined;
}

/** One run as metrics see it. */
export interface RunReport {
  job: string;
  queue: string;
  /** `failed`: threw. `timed_out`: used up its time. `gave_up`: failed, timed out or asked for a retry in its last attempt. */
  outcome: Outcome["outcome"] | "failed" | "timed_out" | "gave_up";
  durationMs: number;
  attempt: number;
}

/** One queued job, as the store handed it out. */
export interface QueuedRun {
  id: string;
  payload: unknown;
  /** 1 for the first run. */
  attempt: number;
  attempts: number;
}

/** Tells the store that the job is to be run again; its text is stored with the job and so names no data. */
export class RunAgain extends Error {
  override readonly name = "RunAgain";
}

/** How long a body may still clean up after its signal aborted; after that the run is given up though it may go on. */
const ABORT_GRACE_MS = 2_000;

/** Runs a body once. Resolves when the job is finished with; rejects with `RunAgain` when it has to be run again. */
export async function runJob(job: JobImplementation, run: QueuedRun, environment: RunEnvironment): Promise<void> {
  const { clock, onRun } = environment;
  const { name, queue } = job.definition;
  const logger = environment.logger.child({ job: name, runId: run.id, attempt: run.attempt, payload: run.payload });
  const startedMs = clock.monotonicMs();
  const ended = await end(job, run, { ...environment, logger });
  const again = ended !== "done" && ended !== "later";
  const gaveUp = again && run.attempt >= run.attempts;
  if (gaveUp) logger.error("the job used up its attempts; a reconciler has to find what is undone");
  onRun?.({
    job: name,
    queue,
    outcome: gaveUp ? "gave_up" : ended,
    durationMs: clock.monotonicMs() - startedMs,
    attempt: run.attempt,
  });
  if (again) throw new RunAgain(`${ended}; the log has more under run ${run.id}`);
}

/** Runs the body, logs how it ended and writes down a later run. */
async function end(job: JobImplementation, run: QueuedRun, environment: RunEnvironment): Promise<RunReport["outcome"]> {
  const { db, clock, logger } = environment;
  try {
    const outcome = await withinItsTime(job, run, environment);
    if (outcome === "timed_out") {
      logger.error({ timeoutMs: job.definition.timeoutMs }, "the job used up its time");
      return "timed_out";
    }
    if (outcome.outcome === "retry") logger.info({ reason: outcome.reason }, "the job asks for another run");
    if (outcome.outcome === "later") {
      const { at, reason } = outcome;
      await db.command((tx) => enqueue(tx, job.definition, run.payload, clock.now(), at));
      logger.debug({ at, reason }, "the job goes on later");
    }
    return outcome.outcome;
  } catch (err) {
    logger.error({ err }, "the job failed");
    return "failed";
  }
}

/** The body's outcome, or `timed_out` once its time and a short grace are over. */
async function withinItsTime(
  job: JobImplementation,
  run: QueuedRun,
  { db, clock, logger, stopping }: RunEnvironment,
): Promise<Outcome | "timed_out"> {
  const overtime = new AbortController();
  const settled = new AbortController();
  const signal = AbortSignal.any([overtime.signal, stopping]);
  const body = job.body(run.payload, { db, clock, signal, logger, runId: run.id, attempt: run.attempt });
  const timer = async (): Promise<"timed_out"> => {
    await clock.sleep(job.definition.timeoutMs, settled.signal);
    if (!settled.signal.aborted) {
      overtime.abort(new Error(`the job's ${job.definition.timeoutMs} ms are over`));
      await clock.sleep(ABORT_GRACE_MS, settled.signal);
    }
    return "timed_out";
  };
  try {
    const outcome = await Promise.race([body, timer()]);
    if (outcome === "timed_out")
      body.catch((err) => logger.warn({ err }, "a job that was given up ended with an error"));
    return outcome;
  } catch (error) {
    if (overtime.signal.aborted) return "timed_out"; // the body ended because it was told to
    throw error;
  } finally {
    settled.abort();
  }
}
