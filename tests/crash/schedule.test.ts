import { expect, test } from "vitest";
import { seeded } from "../support/seeded.ts";
import { LAYOUTS } from "./layouts.ts";
import { MOMENTS } from "./moments.ts";
import { nameOf } from "./round.ts";
import { everyPair, everyRound, momentsOf, roundsOfTurn, turnsOf } from "./schedule.ts";
import { BOUNDED } from "./turn.ts";

const named = ({ victim, moment }: { victim: string; moment: string }) => `${victim} at ${moment}`;

test.each(LAYOUTS)("the soak's schedule of $name has every victim at every moment at which it lives", ({ victims }) => {
  const rounds = everyRound(victims, seeded(3));
  const expected = victims.flatMap((victim) => momentsOf(victim).map((moment) => named({ victim, moment })));
  expect(rounds.map(named).sort()).toEqual(expected.sort());
  expect(everyRound(victims, seeded(3)).map(nameOf)).toEqual(rounds.map(nameOf));
});

test.each(BOUNDED)(
  "the turns of $file kill every victim at every moment before they begin anew",
  ({ victims, count }) => {
    const seen = new Set<string>();
    for (let turn = 0; turn < turnsOf(victims, count); turn++) {
      const rounds = roundsOfTurn(victims, { turn, count }, seeded(turn));
      expect(rounds).toHaveLength(count);
      for (const round of rounds) seen.add(named(round));
    }
    expect([...seen].sort()).toEqual(everyPair(victims).map(named).sort());
  },
);

test.each(BOUNDED)("no turn of $file has one moment alone", ({ victims, count }) => {
  for (let turn = 0; turn < turnsOf(victims, count) - 1; turn++) {
    const rounds = roundsOfTurn(victims, { turn, count }, seeded(turn));
    expect(new Set(rounds.map(({ moment }) => moment)).size).toBeGreaterThan(1);
  }
});

test("whoever serves, works or stores can die at every moment, and a guest while it lives", () => {
  for (const { victims } of LAYOUTS)
    for (const victim of victims)
      expect(momentsOf(victim)).toEqual(
        victim === "guest" ? ["running", "cancel_requested", "completed", "failed"] : MOMENTS,
      );
});
