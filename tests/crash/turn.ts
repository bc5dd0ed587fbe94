import { seeded } from "../support/seeded.ts";
import { PROCESS_VICTIMS } from "./process-victims.ts";
import { REDIS_VICTIMS } from "./redis-victims.ts";
import type { Round } from "./round.ts";
import { roundsOfTurn } from "./schedule.ts";
import type { VictimName } from "./target.ts";
import { VICTIMS } from "./victims.ts";

/** Rounds that one test file lives through in a run of the tests. */
export interface BoundedRounds {
  readonly file: string;
  readonly victims: readonly VictimName[];
  readonly count: number;
}

export const ONE_PROCESS: BoundedRounds = { file: "seeded-deaths.test.ts", victims: VICTIMS, count: 5 };
export const SEPARATE_PROCESSES: BoundedRounds = {
  file: "processes-killed.test.ts",
  victims: [...PROCESS_VICTIMS, ...REDIS_VICTIMS],
  count: 4,
};
export const BOUNDED = [ONE_PROCESS, SEPARATE_PROCESSES];

/**
 * Which turn this run has: the same one each time, so that a run of the tests says something about the code and not about
 * its hour. `NODUS_TEST_SEED` takes another; `npm run soak` goes through all of them.
 */
export const TURN = Number(process.env.NODUS_TEST_SEED ?? 3);

export function roundsOfThisRun({ victims, count }: BoundedRounds): Round[] {
  return roundsOfTurn(victims, { turn: TURN, count }, seeded(TURN));
}
