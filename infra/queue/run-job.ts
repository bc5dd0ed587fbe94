import type { Database } from "../db/database.ts";
import { enqueue } from "../db/outbox.ts";
import { isWaitForOthersOver } from "../db/unavailable.ts";
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
  /**
   * `failed`: threw. `timed_out`: used up its time. `gave_up`: one of these, or `retry`, in the last attempt. `stopped`:
   * was told to end because the process is going down, which is nobody's fault and costs no attempt.
   */
  outcome: Ending | "gave_up";
  durationMs: number;
  attempt: number;
}

type Ending = Outcome["outcome"] | "failed" | "timed_out" | "stopped";

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

/** Tells the store that another process is to run the job, as if this one had not begun. */
export class RunElsewhere extends Error {
  override readonly name = "RunElsewhere";
}

/** How long a body may still clean up after its signal aborted; after that the run is given up though it may go on. */
const ABORT_GRACE_MS = 2_000;

/**
 * Runs a body once. Resolves when the job is finished with.
 *
 * @throws RunAgain when it has to be run again after a while
 * @throws RunElsewhere when the process is going down
 */
export async function runJob(job: JobImplementation, run: QueuedRun, environment: RunEnvironment): Promise<void> {
  const { clock, onRun } = environment;
  const { name, queue } = job.definition;
  const logger = environment.logger.child({ job: name, runId: run.id, attempt: run.attempt, payload: run.payload });
  const startedMs = clock.monotonicMs();
  const ended = await end(job, run, { ...environment, logger });
  const again = ended === "failed" || ended === "timed_out" || ended === "retry";
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
  if (ended === "stopped") throw new RunElsewhere();
}

/** Runs the body, logs how it ended and writes down a later run. */
async function end(job: JobImplementation, run: QueuedRun, environment: RunEnvironment): Promise<Ending> {
  const { db, clock, logger } = environment;
  try {
    const outcome = await withinItsTime(job, run, environment);
    if (outcome === "stopped") logger.info("the job's run ends with the process");
    if (outcome === "timed_out") logger.error({ timeoutMs: job.definition.timeoutMs }, "the job used up its time");
    if (typeof outcome === "string") return outcome;
    if (outcome.outcome === "retry") logger.info({ reason: outcome.reason }, "the job asks for another run");
    if (outcome.outcome === "later") {
      const { at, reason } = outcome;
      await db.command((tx) => enqueue(tx, job.definition, run.payload, clock.now(), at));
      logger.debug({ at, reason }, "the job goes on later");
    }
    return outcome.outcome;
  } catch (err) {
    if (isWaitForOthersOver(err)) {
      logger.info({ reason: (err as Error).message }, "the job wants what others hold and runs again");
      return "retry";
    }
    logger.error({ err }, "the job failed");
    return "failed";
  }
}

type CutShort = "timed_out" | "stopped";

/** The body's outcome, or why it was cut short: at the end of its time or of the process, each with a short grace. */
async function withinItsTime(
  job: JobImplementation,
  run: QueuedRun,
  { db, clock, logger, stopping }: RunEnvironment,
): Promise<Outcome | CutShort> {
  const overtime = new AbortController();
  const settled = new AbortController();
  const signal = AbortSignal.any([overtime.signal, stopping]);
  const cutShort = (): CutShort => (overtime.signal.aborted ? "timed_out" : "stopped");
  const body = job.body(run.payload, { db, clock, signal, logger, runId: run.id, attempt: run.attempt });
  const timer = async (): Promise<CutShort> => {
    await clock.sleep(job.definition.timeoutMs, AbortSignal.any([settled.signal, stopping]));
    if (!settled.signal.aborted && !stopping.aborted) {
      overtime.abort(new Error(`the job's ${job.definition.timeoutMs} ms are over`));
    }
    await clock.sleep(ABORT_GRACE_MS, settled.signal);
    return cutShort();
  };
  try {
    const outcome = await Promise.race([body, timer()]);
    if (typeof outcome === "string") {
      body.catch((err) => logger.warn({ err }, "a job that was given up ended with an error"));
    }
    return outcome;
  } catch (error) {
    if (signal.aborted) return cutShort(); // the body ended because it was told to
    throw error;
  } finally {
    settled.abort();
  }
}
