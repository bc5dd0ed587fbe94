import { beforeAll, expect, test } from "vitest";
import { sharedPlatform } from "../support/platform.ts";
import { ends, script, submit } from "../support/workloads.ts";
import { liveThrough } from "./round.ts";
import { inOneProcess } from "./target.ts";
import { ONE_PROCESS, roundsOfThisRun, TURN } from "./turn.ts";

/**
 * A bounded part of what `npm run soak` does for hours: a few victims, at moments that no other turn has. Those of another
 * turn: `NODUS_TEST_SEED=7 npm test -- tests/crash/seeded-deaths.test.ts`.
 */
const platform = sharedPlatform();

beforeAll(async () => {
  await ends(platform().admin, await submit(platform().admin, script("true"))); // the host agent is there
}, 60_000);

test.each(roundsOfThisRun(ONE_PROCESS))(
  `$victim killed right after $moment ($nth), seed ${TURN}: nothing is lost, doubled, left or mispaid`,
  {
    timeout: 300_000,
  },
  async (round) => {
    expect((await liveThrough(inOneProcess(platform()), round)).struckAtMoment).toBe(true);
  },
);
