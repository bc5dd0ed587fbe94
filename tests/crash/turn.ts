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

const HOUR_MS = 3_600_000;

/**
 * Which turn this run has: the next one with every hour, so that runs reach all pairs one after another. A run of
 * another time is had again with `NODUS_TEST_SEED`, which the tests print in their names.
 */
export const TURN = Number(process.env.NODUS_TEST_SEED ?? Math.floor(Date.now() / HOUR_MS));

export function roundsOfThisRun({ victims, count }: BoundedRounds): Round[] {
  return roundsOfTurn(victims, { turn: TURN, count }, seeded(TURN));
}
