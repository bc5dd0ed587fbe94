import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Deployment } from "../support/deployment.ts";
import { seeded } from "../support/seeded.ts";
import { ends, script, submit } from "../support/workloads.ts";
import { liveThrough, type Round } from "./round.ts";
import { apart } from "./target.ts";

/** As `seeded-deaths.test.ts`, where every role is a process of its own: each of them is killed once. */
const SEED = Number(process.env.NODUS_TEST_SEED ?? 1);
const ROUNDS: readonly Round[] = [
  { victim: "worker", moment: "provisioning", nth: 2 },
  { victim: "compute", moment: "running", nth: 1 },
  { victim: "intake", moment: "running", nth: 3 },
  { victim: "gateway", moment: "accepted", nth: 2 },
];

const random = seeded(SEED);
let deployment: Deployment;

beforeAll(async () => {
  deployment = await Deployment.start();
  await ends(deployment.admin(), await submit(deployment.admin(), script("true")), 60_000);
}, 150_000);
beforeEach(({ onTestFailed }) => onTestFailed(() => console.error(deployment.lastOutput())));
afterAll(() => deployment?.dispose(), 60_000);

test.each(ROUNDS)(
  "$victim killed right after $moment ($nth): nothing is lost, doubled, left or mispaid",
  {
    timeout: 240_000,
  },
  async (round) => {
    const { struckAtMoment } = await liveThrough(apart(deployment), round, random);
    expect(struckAtMoment, `seed ${SEED}`).toBe(true);
  },
);
