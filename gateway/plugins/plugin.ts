import type { Operation, Result } from "../request.ts";

/** What happens around every operation, whichever way it came in. One plugin has one concern. */
export interface GatewayPlugin {
  readonly name: string;
  /** Before anything runs; throws `Refused` to refuse. Operations made in this process are trusted and not asked. */
  admit?(operation: Operation): void | Promise<void>;
  /** When it starts to run, or a stream opens; what it returns hears of the end. */
  started?(operation: Operation): (outcome: Outcome) => void;
  /** When a subgraph is asked; what it returns hears the end, with the error if it failed as a whole. */
  fetching?(operation: Operation, subgraph: string): (error?: unknown) => void;
  /** Every result before it leaves, each event of a stream included. */
  result?(operation: Operation, result: Result): Result;
}

/** How an operation ended. */
export interface Outcome {
  readonly durationMs: number;
  /** Codes of the errors that were sent; none for a stream that ended well. */
  readonly codes: readonly string[];
  /** Results sent: 1, or the events of a stream. */
  readonly results: number;
}
