import { setTimeout as sleep } from "node:timers/promises";
import { vi } from "vitest";
import { Statements } from "../../infra/db/statements.ts";

/** What is sent to databases outside of commands, by whichever `Database` of this process it is asked for. */
export interface SentStatements {
  /** In the order in which they were asked for. */
  readonly texts: readonly string[];
  /** Their number, once it has stood still for a while. */
  settled(): Promise<number>;
  stop(): void;
}

/**
 * Notes every statement outside of commands from now on. It listens below the databases: each request has one of its own,
 * and a count at one of them would miss what the others send.
 */
export function sentStatements(): SentStatements {
  const run = vi.spyOn(Statements.prototype, "run");
  const count = () => run.mock.calls.length;
  return {
    get texts() {
      return run.mock.calls.map(([text]) => text);
    },
    settled: async () => {
      for (let before = -1; before !== count(); await sleep(200)) before = count();
      return count();
    },
    stop: () => run.mockRestore(),
  };
}
