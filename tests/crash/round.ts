import { expect } from "vitest";
import { orphans } from "../../infra/runner/isolation/orphans.ts";
import { kill, processesWith } from "../support/process-table.ts";
import { seeded } from "../support/seeded.ts";
import { until } from "../support/until.ts";
import { stateOf, type WorkloadState } from "../support/workloads.ts";
import { expectNothingLeft, expectOneTruth, expectSound } from "./aftermath.ts";
import { Listener, type Moment } from "./moments.ts";
import { cancelled, complaint, type Inhabitant, population, submitted, treesOf } from "./population.ts";
import { expectSavedLog } from "./saved-log.ts";
import type { Target, VictimName } from "./target.ts";

export interface Round {
  readonly victim: VictimName;
  readonly moment: Moment;
  /** How often the moment passes before. */
  readonly nth: number;
  /** Decides what is left to chance in it. */
  readonly seed: number;
}

/** As it is named in what is printed, and told to `npm run soak -- --round`. */
export function nameOf({ victim, moment, nth }: Round): string {
  return `${victim} at ${moment} (${nth})`;
}

/** What became of a round. */
export interface RoundResult {
  /** Whether the moment came; otherwise the victim was killed when all was quiet. */
  readonly struckAtMoment: boolean;
  readonly workloads: number;
  readonly generations: number;
  readonly tookMs: number;
}

/** How long the moment of a round is waited for. */
const MOMENT_MS = 60_000;
/** A lost host is believed in after half a minute; on a machine that is busy, later. */
const SETTLE_MS = 150_000;
/** A host agent that starts ends what its earlier life left; whatever that overlooks is found within a minute. */
const ORPHANS = { timeoutMs: 75_000, everyMs: 100 };
/** Between two looks at how many trees of a workload's processes live. */
const WATCH_MS = 400;

/**
 * Lets a small population live, kills the victim right after the moment, and sees that everybody ends once, as it was
 * meant to, paid for what it ran, with nothing left behind.
 */
export async function liveThrough(target: Target, round: Round): Promise<RoundResult> {
  const startedAt = performance.now();
  const random = seeded(round.seed);
  const when = `${round.victim} killed at ${round.moment} (${round.nth})`;
  const word = `mark-${crypto.randomUUID().slice(0, 8)}`;
  const people = population(word);
  const watch = watchFor(people);
  const listener = await Listener.open(target);
  const struck = struckIn(target, listener, round, word, random);
  const lives = Promise.all(people.map((one) => live(target, one, round.moment)));
  lives.catch(() => {}); // awaited below, after the victim's death
  try {
    const struckAtMoment = await struck;
    await listener.close();
    await expectSound(target, `${when}, right after`);
    await lives;
    const ends = await Promise.all(people.map((one) => settledEnd(target, one)));
    for (const [n, end] of ends.entries()) await expectFate(target, people[n]!, end, round.victim, when);
    watch.stop();
    expect(watch.doubled, when).toEqual([]);
    await until(`${when}: no process is left`, () => processesWith(word).length === 0);
    await until(
      `${when}: nothing lives on without what started it`,
      async () => (await orphans()).length === 0,
      ORPHANS,
    );
    await until(`${when}: everything is let go`, () => isLetGo(target));
    await expectSound(target, when);
    await expectNothingLeft(target, when);
    const generations = ends.reduce((sum, end) => sum + end.placements.length, 0);
    return { struckAtMoment, workloads: people.length, generations, tookMs: performance.now() - startedAt };
  } finally {
    watch.stop();
    await listener.close();
    await lives.catch(() => {}); // told above, unless something else failed first
  }
}

async function struckIn(
  target: Target,
  listener: Listener,
  { victim, moment, nth }: Round,
  word: string,
  random: (below: number) => number,
): Promise<boolean> {
  const aimed = target.aim(victim, word, random);
  const struck = await listener.strikeAt(moment, nth, () => aimed.strike(), MOMENT_MS);
  if (!struck) aimed.strike();
  await aimed.recover();
  return struck;
}

/** From the submit to where nobody has to do anything any more. */
async function live(target: Target, one: Inhabitant, moment: Moment): Promise<void> {
  const client = target.admin;
  await submitted(client, one);
  await submitted(client, one); // as a client whose answer was lost
  if (one.fate === "is cancelled") {
    await until("it runs or is over", async () => isPast(await maybeState(target, one), ["running"]), PATIENTLY);
    if (moment === "interrupted" || moment === "recovering") await interrupt(target, one);
    await cancelled(client, one);
  }
  if (one.fate === "waits") {
    await until("it says why it waits", async () => (await maybeState(target, one))?.waitingReason, PATIENTLY);
    await cancelled(client, one);
  }
}

const PATIENTLY = { timeoutMs: 90_000, everyMs: 100 };
const OVER = ["completed", "failed", "cancelled"];

function isPast(state: WorkloadState | null, states: readonly string[]): boolean {
  return state !== null && [...states, ...OVER].includes(state.status);
}

/** A host agent that is told to go takes its guests with it, and they are placed again. */
async function interrupt(target: Target, one: Inhabitant): Promise<void> {
  kill(target.hostAgentPid(), "SIGTERM");
  const isInterrupted = (state: WorkloadState | null) =>
    isPast(state, ["recovering"]) || (state !== null && state.placements.length > 1);
  await until("its generation was lost", async () => isInterrupted(await maybeState(target, one)), PATIENTLY);
}

/** Null while the platform cannot be asked. */
async function maybeState(target: Target, one: Inhabitant): Promise<WorkloadState | null> {
  return stateOf(target.admin, one.id!).catch(() => null); // it is dead, or starting
}

function settledEnd(target: Target, one: Inhabitant): Promise<WorkloadState> {
  const settled = async () => {
    const state = await maybeState(target, one);
    return state?.settledAt ? state : null;
  };
  return until(`${one.id} (${one.fate}) is settled`, settled, { timeoutMs: SETTLE_MS, everyMs: 200 });
}

async function expectFate(
  target: Target,
  one: Inhabitant,
  end: WorkloadState,
  victim: VictimName,
  when: string,
): Promise<void> {
  expect(complaint(one, end, victim === "guest"), when).toBeNull();
  expectOneTruth(end, `${when}: ${one.id}`);
  if (end.status === "cancelled" || end.reason === "signalled" || end.reason === "start_failed") return;
  await expectSavedLog(target.admin, one.id!, one.log, `${when}: the log of ${one.id}`);
  if (!one.log.startsWith("tick") || one.fate !== "completes") return;
  const outputs = (await target.admin.rest("listWorkloadOutputs", { path: { id: one.id! } })).body.outputs;
  expect(
    outputs.map((output: { name: string }) => output.name),
    when,
  ).toEqual(["outputs.tar"]);
}

async function isLetGo(target: Target): Promise<boolean> {
  const open = await target.sql(
    `select 1 from compute.attempt where state <> 'gone' union all
     select 1 from compute.placement where log_bytes > 0 and log_committed_at is null`,
  );
  return open.length === 0;
}

/** Notes inhabitants of whom two trees of processes were seen at once, twice in a row: one may be on its way out. */
function watchFor(people: readonly Inhabitant[]): { readonly doubled: string[]; stop(): void } {
  const doubled: string[] = [];
  const suspects = new Set<string>();
  const timer = setInterval(() => {
    for (const one of people) {
      if (treesOf(one) <= 1) suspects.delete(one.mark);
      else if (suspects.has(one.mark)) doubled.push(`${one.fate} ${one.id} runs twice`);
      else suspects.add(one.mark);
    }
  }, WATCH_MS);
  return { doubled, stop: () => clearInterval(timer) };
}
