/** A job as data: what it is called and how it is run. Its body is bound to it by `implementJob`. */
export interface JobDefinition<P> {
  /** `domain.verbNoun`, such as `compute.placeStage`. */
  readonly name: string;
  /** Queue that carries it; jobs of one queue share workers. */
  readonly queue: string;
  /** How many run at once in one process. */
  readonly concurrency: number;
  /** After this long a run counts as lost and may be run again. */
  readonly timeoutMs: number;
  /** Runs in all; each must be safe to repeat. What is still undone after the last is found by a reconciler. */
  readonly attempts: number;
  /** Only for the type. */
  readonly payload?: P;
}

/** Defines a job. Payloads hold ids only: the database is the truth, a queue may lose or repeat them. */
export function defineJob<P>(definition: Omit<JobDefinition<P>, "payload">): JobDefinition<P> {
  return Object.freeze(definition);
}
