import type { ExitRecord, OrderSpec } from "../../runner/protocol.ts";

/** One thing that a scripted guest does. */
export type ScriptStep =
  /** Prints a text, as it is. */
  | { log: string }
  /** Reports a work unit done. */
  | { unit: string; ms: number }
  | { waitMs: number }
  /** Its machine vanishes without a word. */
  | { die: true };

/** What a simulated guest does once it runs. */
export interface Script {
  /** In order; then the command exits. */
  steps: readonly ScriptStep[];
  /** How the command ends; code 0 unless said. */
  exit?: Partial<Pick<ExitRecord, "code" | "signal" | "oom" | "startFailure">>;
  /** Takes no notice of being asked to stop; it is killed when the grace is over. */
  ignoresCancel?: boolean;
  /** Time between the session and the command. */
  stagingMs?: number;
}

/** Chooses what an order's guest does, by what it was sent. */
export type Scripts = (spec: OrderSpec) => Script;

/** Prints its command and ends well. */
export const echo: Scripts = (spec) => ({ steps: [{ log: `${spec.command.join(" ")}\n` }] });
