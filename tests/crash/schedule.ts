import { MOMENTS, type Moment } from "./moments.ts";
import type { Round } from "./round.ts";
import type { VictimName } from "./target.ts";

/** Moments that a population may have only one of. */
const ONCE: ReadonlySet<Moment> = new Set(["failed", "interrupted", "recovering"]);

/** Every victim at every moment once, in an order and at repetitions that the random numbers decide. */
export function everyRound(victims: readonly VictimName[], random: (below: number) => number): Round[] {
  const rounds = victims.flatMap((victim) =>
    MOMENTS.filter((moment) => happens(victim, moment)).map((moment) => ({
      victim,
      moment,
      nth: 1 + (ONCE.has(moment) ? 0 : random(2)),
    })),
  );
  for (let n = rounds.length - 1; n > 0; n--) {
    const other = random(n + 1);
    [rounds[n], rounds[other]] = [rounds[other]!, rounds[n]!];
  }
  return rounds;
}

/** A guest that is not there cannot be killed. */
function happens(victim: VictimName, moment: string): boolean {
  return victim !== "guest" || ["running", "cancel_requested", "completed", "failed"].includes(moment);
}
