import { MOMENTS, type Moment } from "./moments.ts";
import type { Round } from "./round.ts";
import type { VictimName } from "./target.ts";

/** A victim and the moment that it dies right after. */
export type Pair = Pick<Round, "victim" | "moment">;

/** Moments that a population may have only one of. */
const ONCE: ReadonlySet<Moment> = new Set(["failed", "interrupted", "recovering", "cancel_requested"]);
/** Moments while a guest lives: one that is not there cannot be killed. */
const GUEST_LIVES: readonly Moment[] = ["running", "cancel_requested", "completed", "failed"];

/** At which moments a victim can die. */
export function momentsOf(victim: VictimName): readonly Moment[] {
  return victim === "guest" ? GUEST_LIVES : MOMENTS;
}

/**
 * Every victim at every moment once, in an order, at repetitions and with seeds of their own that the random numbers
 * decide.
 */
export function everyRound(victims: readonly VictimName[], random: (below: number) => number): Round[] {
  const rounds = everyPair(victims).map((pair) => roundOf(pair, random));
  for (let n = rounds.length - 1; n > 0; n--) {
    const other = random(n + 1);
    [rounds[n], rounds[other]] = [rounds[other]!, rounds[n]!];
  }
  return rounds;
}

/**
 * The rounds of one turn of many: turn after turn, `count` pairs each, until every victim has died at every moment and
 * it begins anew.
 */
export function roundsOfTurn(
  victims: readonly VictimName[],
  { turn, count }: { readonly turn: number; readonly count: number },
  random: (below: number) => number,
): Round[] {
  const pairs = everyPair(victims);
  return Array.from({ length: Math.min(count, pairs.length) }, (_, n) =>
    roundOf(pairs[(turn * count + n) % pairs.length]!, random),
  );
}

/** Turns until every victim has died at every moment. */
export function turnsOf(victims: readonly VictimName[], count: number): number {
  return Math.ceil(everyPair(victims).length / count);
}

/** Each pair once; neighbours have different victims and different moments, so that a few of them are a fair sample. */
export function everyPair(victims: readonly VictimName[]): Pair[] {
  return MOMENTS.flatMap((_, lap) =>
    victims.flatMap((victim, place) => {
      const moments = momentsOf(victim);
      return lap < moments.length ? [{ victim, moment: moments[(lap + STEP * place) % moments.length]! }] : [];
    }),
  );
}

/** How far the moments of neighbouring victims are apart. */
const STEP = 3;

function roundOf(pair: Pair, random: (below: number) => number): Round {
  return { ...pair, nth: 1 + (ONCE.has(pair.moment) ? 0 : random(2)), seed: random(SEEDS) };
}

const SEEDS = 1_000_000;
