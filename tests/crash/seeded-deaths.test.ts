import { beforeAll, expect, test } from "vitest";
import { sharedPlatform } from "../support/platform.ts";
import { seeded } from "../support/seeded.ts";
import { ends, script, submit } from "../support/workloads.ts";
import { liveThrough, type Round } from "./round.ts";
import { inOneProcess } from "./target.ts";

/**
 * A bounded part of what `npm run soak` does for hours: every kind of victim is killed once, at moments that a seed
 * picks. Other seeds: `NODUS_TEST_SEED=7 npm test -- tests/crash/seeded-deaths.test.ts`.
 */
const SEED = Number(process.env.NODUS_TEST_SEED ?? 1);
const ROUNDS: readonly Round[] = [
  { victim: "platform", moment: "provisioning", nth: 2 },
  { victim: "starting platform", moment: "running", nth: 2 },
  { victim: "postgres", moment: "launched", nth: 1 },
  { victim: "platform", moment: "recovering", nth: 1 },
  { victim: "guest", moment: "running", nth: 2 },
  { victim: "platform", moment: "cancel_requested", nth: 1 },
];

const platform = sharedPlatform();
const random = seeded(SEED);

beforeAll(async () => {
  await ends(platform().admin, await submit(platform().admin, script("true"))); // the host agent is there
}, 60_000);

test.each(ROUNDS)(
  "$victim killed right after $moment ($nth): nothing is lost, doubled, left or mispaid",
  {
    timeout: 240_000,
  },
  async (round) => {
    const { struckAtMoment } = await liveThrough(inOneProcess(platform()), round, random);
    expect(struckAtMoment, `seed ${SEED}`).toBe(true);
  },
);
