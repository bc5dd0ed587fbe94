import type { ExitRecord } from "../../../infra/runner/protocol.ts";

/** What an exit means for the stage. */
export type Verdict =
  | { verdict: "completed" }
  | { verdict: "failed"; reason: string; message: string }
  | { verdict: "cancelled" }
  /** The infrastructure's fault: another generation by policy. */
  | { verdict: "lost"; trigger: string };

type Facts = Pick<ExitRecord, "code" | "signal" | "oom" | "killedBy" | "startFailure">;

/**
 * Reads the truth from an exit record. Lack of memory is the workload's failure, a host's shutdown is not; an unknown
 * code is never taken for success.
 */
export function verdictOf(exit: Facts, outputFailure: string | null): Verdict {
  if (exit.startFailure) return startVerdict(exit.startFailure);
  if (exit.killedBy) return killedVerdict(exit.killedBy);
  if (exit.oom) return failed("oom", "The command was ended because it ran out of memory.");
  if (exit.signal !== null) return failed("signalled", `The command was ended by ${exit.signal}.`);
  if (exit.code === null) return { verdict: "lost", trigger: "runner_lost" };
  if (exit.code !== 0) return failed("exit_nonzero", `The command ended with code ${exit.code}.`);
  if (outputFailure !== null) return failed("output_invalid", outputFailure);
  return { verdict: "completed" };
}

function startVerdict(failure: NonNullable<ExitRecord["startFailure"]>): Verdict {
  switch (failure.kind) {
    case "not_found":
    case "not_executable":
      return failed("start_failed", failure.message);
    case "staging":
      return failed("input_unavailable", failure.message);
    case "isolation":
      return failed("isolation_unavailable", failure.message);
    case "internal":
      return { verdict: "lost", trigger: "runner_lost" };
  }
}

function killedVerdict(killedBy: NonNullable<ExitRecord["killedBy"]>): Verdict {
  switch (killedBy) {
    case "cancel":
      return { verdict: "cancelled" };
    case "deadline":
      return failed("deadline_exceeded", "The deadline passed before the work was done.");
    case "funding":
      return failed("budget_exhausted", "The authorised spending was used up before the work was done.");
    case "memory":
      return failed("oom", "The command was ended because it ran out of memory.");
    case "disk":
      return failed("disk_full", "The command was ended because it used more disk than it was given.");
    case "lease":
      return { verdict: "lost", trigger: "runner_lost" };
    case "drain":
      return { verdict: "lost", trigger: "reclaim" };
    case "host_shutdown":
      return { verdict: "lost", trigger: "host_lost" };
  }
}

function failed(reason: string, message: string): Verdict {
  return { verdict: "failed", reason, message };
}

/** The exit code on the wire: 128 + n for a known signal, 137 for lack of memory, null when unknown. */
export function exitCodeOf(exit: Facts): number | null {
  if (exit.code !== null) return exit.code;
  if (exit.oom || exit.killedBy === "memory") return 137;
  const number = exit.signal === null ? undefined : SIGNAL_NUMBERS[exit.signal];
  return number === undefined ? null : 128 + number;
}

const SIGNAL_NUMBERS: Record<string, number> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
  SIGXCPU: 24,
  SIGXFSZ: 25,
  SIGSYS: 31,
};
