import type { CommandBounds } from "./database.ts";

/**
 * Of a command of a job or a reconciler about one team's rows, which comes again by itself: it uses the team's share of
 * the connections, and while somebody holds a row of the team it fails at once with `TeamBusy`.
 */
export function forJob(teamId: string): CommandBounds {
  return { teamId, comesAgain: true };
}
