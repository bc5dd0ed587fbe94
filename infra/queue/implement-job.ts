import type { Database } from "../db/database.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { JobDefinition } from "./define-job.ts";

/** How one run of a job ended. A thrown error is logged and counts as `retry`. */
export type Outcome =
  /** Nothing is left to do. */
  | { outcome: "done" }
  /** Run again at `at`: written to the outbox as business time, so it survives the loss of the queue. */
  | { outcome: "later"; at: Date; reason: string }
  /** Run again soon, by the back-off policy, as long as the definition's attempts last. */
  | { outcome: "retry"; reason: string };

/** What a job's body may use. It has no other way to time, chance or a connection. */
export interface JobContext {
  db: Database;
  clock: Clock;
  /** Aborts when the run has used up its time, or when the process is going down. Pass it to every call outside. */
  signal: AbortSignal;
  /** Carries the job's name, run and payload ids. */
  logger: Logger;
  /** Names the queued job; the same in every attempt, so it may serve as an idempotency token. */
  runId: string;
  /** 1 for the first run. */
  attempt: number;
}

/** A definition and the body that does it. */
export interface JobImplementation<P = unknown> {
  readonly definition: JobDefinition<P>;
  /** May run more than once, at the same time even, and may die at any step. */
  body(payload: P, context: JobContext): Promise<Outcome>;
}

/** Shorthand for the commonest outcome. */
export const DONE: Outcome = Object.freeze({ outcome: "done" });

/** Binds a body to a definition. */
export function implementJob<P>(
  definition: JobDefinition<P>,
  body: JobImplementation<P>["body"],
): JobImplementation<P> {
  return Object.freeze({ definition, body });
}
