import type { Habitat, Layout } from "../../crash/layouts.ts";
import { leftOfWork, tracesOf } from "../../crash/leftovers.ts";
import { liveThrough, nameOf, type Round } from "../../crash/round.ts";
import { everyRound } from "../../crash/schedule.ts";
import { seeded } from "../../support/seeded.ts";
import { LayoutTally } from "./layout-tally.ts";
import type { Plan } from "./plan.ts";

/** Rounds on one layout before the next one has its turn. */
const SHIFT = 6;

/**
 * Kills one victim after another, on one layout after another, until the time is over. A round that fails is told with
 * the command that repeats it; the next one starts on a new platform, since what it would find is no longer known.
 */
export async function crashRounds(plan: Plan): Promise<LayoutTally[]> {
  const courses = plan.layouts.map((layout) => ({
    layout,
    tally: new LayoutTally(layout),
    rounds: roundsOn(layout, plan),
  }));
  while (!plan.isOver() && courses.some(({ tally }) => !tally.isDone))
    for (const { layout, tally, rounds } of courses) {
      if (plan.isOver()) break;
      if (layout.missing === null) await shift(layout, tally, rounds, plan);
      else tally.isDone = true;
    }
  return courses.map(({ tally }) => tally);
}

/** Rounds without an end, or the chosen one as often as it is wanted. */
function* roundsOn({ victims }: Layout, { only, seed }: Plan): Generator<Round> {
  if (only) for (let n = 0; n < only.times; n++) yield { ...only.round, seed: seed + n };
  else for (const random = seeded(seed); ; ) yield* everyRound(victims, random);
}

async function shift(layout: Layout, tally: LayoutTally, rounds: Generator<Round>, plan: Plan): Promise<void> {
  let habitat: Habitat | null = null;
  try {
    for (let n = 0; n < SHIFT && !plan.isOver(); n++) {
      const { value: round, done } = rounds.next();
      if (done) {
        tally.isDone = true;
        break;
      }
      habitat ??= await begin(layout);
      if (await tried(habitat, round, tally, plan)) continue;
      await leave(habitat, tally, plan);
      habitat = null;
    }
    if (habitat) left(await leftOfWork(habitat.target.dataDir), tally, plan);
  } finally {
    if (habitat) await leave(habitat, tally, plan);
  }
}

async function leave(habitat: Habitat, tally: LayoutTally, plan: Plan): Promise<void> {
  const traces = tracesOf(habitat.target.dataDir);
  await habitat.dispose();
  left(traces(), tally, plan);
}

function left(things: readonly string[], tally: LayoutTally, plan: Plan): void {
  for (const thing of things) {
    const told = `${tally.layout}: left behind: ${thing}`;
    tally.failures.push(told);
    plan.say(`FAILED ${told}`);
  }
}

/** False when it failed. */
async function tried(habitat: Habitat, round: Round, tally: LayoutTally, plan: Plan): Promise<boolean> {
  const name = `${tally.layout}: ${nameOf(round)}`;
  try {
    const result = await liveThrough(habitat.target, round);
    tally.count(round, result);
    const { struckAtMoment, generations, tookMs } = result;
    plan.say(
      `${name}: ${struckAtMoment ? "" : "in quiet, "}${generations} generations, ${(tookMs / 1000).toFixed(1)} s`,
    );
    return true;
  } catch (error) {
    const told = tally.fail(round, error as Error);
    plan.say(`FAILED ${told}\n${(error as Error).stack}\n${habitat.target.lastOutput()}`);
    return false;
  }
}

/** A machine that is busy with more than the soak may need a second try. */
async function begin(layout: Layout, tries = 3): Promise<Habitat> {
  return layout.begin().catch((error) => {
    if (tries > 1) return begin(layout, tries - 1);
    throw error;
  });
}
