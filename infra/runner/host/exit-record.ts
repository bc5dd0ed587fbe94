import type { GuestEnd, StartFailure } from "../guest/guest.ts";
import type { ExitRecord, KilledBy } from "../protocol.ts";
import type { SpoolState } from "./spool.ts";

/** Longest reason that a record carries. */
export const REASON_LENGTH = 1_000;

/** A command that was never executed; `failure` is null when it was stopped before that. */
export function neverRan(failure: StartFailure | null, killedBy: KilledBy | null): ExitRecord {
  const startFailure = killedBy || !failure ? null : { ...failure, message: failure.message.slice(0, REASON_LENGTH) };
  return { type: "exit", code: null, signal: null, oom: false, killedBy, startFailure, ranMs: 0 };
}

/** A command that ran. */
export function ran(end: GuestEnd, killedBy: KilledBy | null, ranMs: number): ExitRecord {
  const killedForMemory = killedBy === "memory";
  // What a shell says of a command that the kernel kills for memory, also where a watchdog did it.
  const status = killedForMemory ? { code: 137, signal: null } : { code: end.code, signal: end.signal };
  return { type: "exit", ...status, oom: end.oom || killedForMemory, killedBy, startFailure: null, ranMs };
}

/**
 * A command whose host agent died and took it along. Neither code nor signal is known; how long it ran is known as far
 * as the agent left marks of life.
 */
export function lostWithItsHost(state: SpoolState, touchedAt: Date): ExitRecord {
  const seenAtMs = Math.max(touchedAt.getTime(), state.lastAt?.getTime() ?? 0);
  const ranMs = state.runningAt ? Math.max(0, Math.round(seenAtMs - state.runningAt.getTime())) : 0;
  return { type: "exit", code: null, signal: null, oom: false, killedBy: "host_shutdown", startFailure: null, ranMs };
}
