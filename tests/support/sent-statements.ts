import { vi } from "vitest";
import { Statements } from "../../infra/db/statements.ts";

/** What is sent to databases outside of commands, by whichever `Database` of this process it is asked for. */
export interface SentStatements {
  /** In the order in which they were asked for. */
  readonly texts: readonly string[];
  stop(): void;
}

/**
 * Notes every statement outside of commands from now on. It listens below the databases: each request has one of its own,
 * and a count at one of them would miss what the others send.
 */
export function sentStatements(): SentStatements {
  const run = vi.spyOn(Statements.prototype, "run");
  return {
    get texts() {
      return run.mock.calls.map(([text]) => text);
    },
    stop: () => run.mockRestore(),
  };
}
