import type { Layout } from "../../crash/layouts.ts";
import { nameOf, type Round, type RoundResult } from "../../crash/round.ts";
import { everyPair } from "../../crash/schedule.ts";

/** What the rounds on one layout came to. */
export class LayoutTally {
  readonly layout: string;
  readonly failures: string[] = [];
  /** No more rounds are wanted, or none can be had. */
  isDone = false;
  workloads = 0;
  generations = 0;
  readonly #missing: string | null;
  readonly #pairs: number;
  /** How often each victim died at each moment, and in how many of those rounds the moment did not come. */
  readonly #rounds = new Map<string, Map<string, { died: number; missed: number }>>();

  constructor({ name, missing, victims }: Layout) {
    this.layout = name;
    this.#missing = missing;
    this.#pairs = everyPair(victims).length;
  }

  count({ victim, moment }: Round, { struckAtMoment, workloads, generations }: RoundResult): void {
    const moments = this.#rounds.get(victim) ?? new Map<string, { died: number; missed: number }>();
    const { died, missed } = moments.get(moment) ?? { died: 0, missed: 0 };
    moments.set(moment, { died: died + 1, missed: missed + (struckAtMoment ? 0 : 1) });
    this.#rounds.set(victim, moments);
    this.workloads += workloads;
    this.generations += generations;
  }

  /** Whether anything was killed on it. */
  get isTried(): boolean {
    return this.#rounds.size > 0;
  }

  /** Keeps the failure; its text says how the round is had again. */
  fail(round: Round, { message }: Error): string {
    const again = `npm run soak -- --layout "${this.layout}" --round "${nameOf(round)}" --seed ${round.seed}`;
    const told = `${this.layout}: ${nameOf(round)}: ${message}\n  again: ${again}`;
    this.failures.push(told);
    return told;
  }

  lines(): string[] {
    if (this.#missing) return [`${this.layout}: not tried: ${this.#missing}`];
    const all = [...this.#rounds.values()].flatMap((moments) => [...moments.values()]);
    const sum = (of: (one: { died: number; missed: number }) => number) =>
      all.reduce((total, one) => total + of(one), 0);
    const reached = all.filter(({ died, missed }) => died > missed).length;
    return [
      `${this.layout}: ${sum(({ died }) => died)} rounds, ${this.failures.length} failures; ${reached} of ${this.#pairs} pairs of victim and moment reached, ${sum(({ missed }) => missed)} rounds in quiet; ${this.workloads} workloads in ${this.generations} generations`,
      ...[...this.#rounds].map(([victim, moments]) => `    ${victim}: ${[...moments].map(shown).join(", ")}`),
    ];
  }
}

function shown([moment, { died, missed }]: [string, { died: number; missed: number }]): string {
  return `${moment} ${died - missed}${missed > 0 ? ` (+${missed} in quiet)` : ""}`;
}
