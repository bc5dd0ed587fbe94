import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type Habitat, LAYOUTS } from "./layouts.ts";
import { liveThrough } from "./round.ts";
import { roundsOfThisRun, SEPARATE_PROCESSES, TURN } from "./turn.ts";

/** As `seeded-deaths.test.ts`, where every role is a process of its own and Redis carries the queue. */
const layout = LAYOUTS.find(({ name }) => name === "separate processes on Redis")!;
let habitat: Habitat;

beforeAll(async () => {
  if (layout.missing === null) habitat = await layout.begin();
}, 150_000);
beforeEach(({ skip, onTestFailed }) => {
  if (layout.missing !== null) skip(layout.missing);
  onTestFailed(() => console.error(habitat.target.lastOutput()));
});
afterAll(() => habitat?.dispose(), 60_000);

test.each(roundsOfThisRun(SEPARATE_PROCESSES))(
  `$victim killed right after $moment ($nth), seed ${TURN}: nothing is lost, doubled, left or mispaid`,
  {
    timeout: 300_000,
  },
  async (round) => {
    expect((await liveThrough(habitat.target, round)).struckAtMoment).toBe(true);
  },
);
