import { liveThrough, type Round } from "../../crash/round.ts";
import { everyRound } from "../../crash/schedule.ts";
import { inOneProcess } from "../../crash/target.ts";
import { VICTIMS } from "../../crash/victims.ts";
import { Platform } from "../../support/platform.ts";
import { ends, script, submit } from "../../support/workloads.ts";
import type { Plan } from "./plan.ts";

/** What the rounds of the soak came to. */
export interface CrashTally {
  rounds: number;
  /** Rounds whose victim was killed in quiet, since its moment did not come. */
  missed: number;
  workloads: number;
  generations: number;
  readonly byVictim: Map<string, number>;
  readonly failures: string[];
}

/**
 * Kills one victim after another until the time is over. A round that fails is told with its seed; the next one starts
 * on a new platform, since what it would find is no longer known.
 */
export async function crashRounds({ random, isOver, say }: Plan): Promise<CrashTally> {
  const tally: CrashTally = { rounds: 0, missed: 0, workloads: 0, generations: 0, byVictim: new Map(), failures: [] };
  let platform = await begin();
  try {
    while (!isOver())
      for (const round of everyRound(VICTIMS, random)) {
        if (isOver()) break;
        const name = `${round.victim} at ${round.moment} (${round.nth})`;
        try {
          count(tally, round, await liveThrough(inOneProcess(platform), round, random), (line) =>
            say(`${name}: ${line}`),
          );
        } catch (error) {
          tally.failures.push(`${name}: ${(error as Error).message}`);
          say(`FAILED ${name}: ${(error as Error).stack}\n${platform.lastOutput()}`);
          await platform.dispose();
          platform = await begin();
        }
      }
  } finally {
    await platform.dispose();
  }
  return tally;
}

/** A platform whose host agent is there. A machine that is busy with more than the soak may need a second try. */
async function begin(tries = 3): Promise<Platform> {
  const platform = await Platform.start().catch((error) => {
    if (tries > 1) return begin(tries - 1);
    throw error;
  });
  await ends(platform.admin, await submit(platform.admin, script("true")));
  return platform;
}

function count(
  tally: CrashTally,
  { victim }: Round,
  { struckAtMoment, workloads, generations, tookMs }: Awaited<ReturnType<typeof liveThrough>>,
  say: (line: string) => void,
): void {
  tally.rounds++;
  if (!struckAtMoment) tally.missed++;
  tally.workloads += workloads;
  tally.generations += generations;
  tally.byVictim.set(victim, (tally.byVictim.get(victim) ?? 0) + 1);
  say(`${struckAtMoment ? "" : "in quiet, "}${generations} generations, ${(tookMs / 1000).toFixed(1)} s`);
}
