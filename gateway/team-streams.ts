import { LIMITS } from "../infra/kernel/limits.ts";
import { type RefusalKind, Refused } from "../infra/kernel/refusal.ts";
import { GATEWAY } from "./refusals.ts";

/** When what was refused may be tried again: streams rarely end at once. */
const RETRY_AFTER_SECONDS = 5;

/** What one team has open at this gateway: its streams, and all operations that run on them. */
export class TeamStreams {
  /** Streams that it may have. What runs on them is bounded by the same number: a stream has so much on average. */
  readonly #limit: number;
  #streams = 0;
  #operations = 0;
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get streams(): number {
    return this.#streams;
  }

  get operations(): number {
    return this.#operations;
  }

  /** Nothing is open, and nothing runs any more on what was. */
  get isIdle(): boolean {
    return this.#streams === 0 && this.#operations === 0;
  }

  /** Counts a stream. Throws `too_many_streams`. */
  enter(): void {
    refuseAbove(GATEWAY.too_many_streams, this.#limit, this.#streams + 1);
    this.#streams++;
  }

  leave(): void {
    this.#streams--;
  }

  /** Counts an operation that a message of so many bytes began. Throws `too_many_team_operations` or `team_operations_too_large`. */
  begin(bytes: number): void {
    refuseAbove(GATEWAY.too_many_team_operations, this.#limit * LIMITS.operationsPerStream, this.#operations + 1);
    refuseAbove(GATEWAY.team_operations_too_large, this.#limit * LIMITS.operationBytesPerStream, this.#bytes + bytes);
    this.#operations++;
    this.#bytes += bytes;
  }

  /** The operation is over. */
  end(bytes: number): void {
    this.#operations--;
    this.#bytes -= bytes;
  }
}

function refuseAbove(kind: RefusalKind, limit: number, seen: number): void {
  if (seen <= limit) return;
  throw new Refused(kind, {
    message: `${kind.message} The limit is ${limit}.`, // short: it has to fit into a close frame
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    extra: { limit, seen },
  });
}
