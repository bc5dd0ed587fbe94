import { LAYOUTS, type Layout } from "../../crash/layouts.ts";
import { MOMENTS, type Moment } from "../../crash/moments.ts";
import type { Round } from "../../crash/round.ts";
import { seeded } from "../../support/seeded.ts";

/** How long, from which seed, on which layouts, and how to tell of it. */
export interface Plan {
  readonly hours: number;
  readonly seed: number;
  /** Streams that come and go together. */
  readonly streams: number;
  readonly layouts: readonly Layout[];
  /** The one round to repeat, and how often; null for all rounds. */
  readonly only: { readonly round: Round; readonly times: number } | null;
  readonly random: (below: number) => number;
  isOver(): boolean;
  /** A line of progress, with the time that has passed. */
  say(line: string): void;
}

/** What `run.mjs` hands over, as JSON. */
export interface SoakOptions {
  readonly hours: number;
  readonly seed: number;
  readonly streams: number;
  readonly layout: string | null;
  readonly round: string | null;
  readonly times: number;
}

export function planned({ hours, seed, streams, layout, round, times }: SoakOptions): Plan {
  const startedAt = performance.now();
  const passedMs = () => performance.now() - startedAt;
  const only = round === null ? null : { round: roundNamed(round, seed), times };
  const layouts = LAYOUTS.filter(({ name }) => layout === null || name === layout);
  if (layouts.length === 0)
    throw new Error(`no layout is named ${layout}; there are: ${LAYOUTS.map(({ name }) => name).join(", ")}`);
  const able = only ? layouts.filter(({ victims }) => victims.includes(only.round.victim)) : layouts;
  if (only && able.length === 0)
    throw new Error(`no victim is named ${only.round.victim}; there are: ${victimsOf(layouts).join(", ")}`);
  return {
    hours,
    seed,
    streams,
    layouts: only ? able.slice(0, 1) : able,
    only,
    random: seeded(seed),
    isOver: () => passedMs() > hours * 3_600_000,
    say: (line) => void process.stdout.write(`[${clock(passedMs())}] ${line}\n`),
  };
}

/** A round by its name, as `nameOf` gives it; the number may be left out. */
export function roundNamed(name: string, seed: number): Round {
  const [, victim, moment, nth = "1"] = /^(.+) at (\w+)(?: \((\d+)\))?$/.exec(name) ?? [];
  if (!MOMENTS.includes(moment as Moment))
    throw new Error(`a round is "<victim> at <moment>"; moments are: ${MOMENTS.join(", ")}`);
  return { victim: victim as Round["victim"], moment: moment as Moment, nth: Number(nth), seed };
}

function victimsOf(layouts: readonly Layout[]): string[] {
  return [...new Set(layouts.flatMap(({ victims }) => victims))];
}

function clock(ms: number): string {
  return new Date(ms).toISOString().slice(11, 19);
}
