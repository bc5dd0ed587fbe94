import type { Database } from "../../infra/db/database.ts";
import type { FakeClock } from "../../infra/kernel/clock.ts";
import type { JobContext, Outcome } from "../../infra/queue/implement-job.ts";
import { createLogger, type Logger } from "../../infra/telemetry/logger.ts";
import { type Death, deathAt } from "../../roles/simulation/death.ts";

/** Where a job runs in a test. */
export interface JobWorld {
  db: Database;
  /** Moved forward to where a job asks to go on later. */
  clock: FakeClock;
  /** What the job calls outside the database, such as drivers, by name. */
  ports?: Record<string, object>;
}

/** A job under trial. Every run of it starts from what the one before left in the world. */
export interface JobTrial<W extends JobWorld> {
  /** Makes a new world with all that the job expects to find. */
  setup(): Promise<W>;
  /** Runs the body once, on the database and the ports of the world it is given: `job.body(payload, jobContext(world))`. */
  run(world: W): Promise<Outcome>;
  /** What else finishes the work in a deployment: the reconcilers. Runs before `assert`. */
  reconcile?(world: W): Promise<void>;
  /** Fails unless the work was done exactly once. */
  assert(world: W): Promise<void>;
  /** Takes the world down, whether the trial went well or not. */
  teardown(world: W): Promise<void>;
}

const silent = createLogger({ level: "silent", role: "test" });

/** What a job's body is given in a test. */
export function jobContext(world: JobWorld, changes: Partial<JobContext> & { logger?: Logger } = {}): JobContext {
  return {
    db: world.db,
    clock: world.clock,
    signal: new AbortController().signal,
    logger: silent,
    runId: "run-under-trial",
    attempt: 1,
    ...changes,
  };
}

/** Runs the job twice in a row, then (in a new world) twice at the same time and once more: the work is done once. */
export async function survivesBeingRunTwice<W extends JobWorld>(trial: JobTrial<W>): Promise<void> {
  await inWorld(trial, async (world) => {
    await toCompletion(trial, world, "the first run");
    await toCompletion(trial, world, "the second run");
    return "two runs";
  });
  await inWorld(trial, async (world) => {
    // Either may lose to the other with an error, as long as a further run finds everything in order.
    await Promise.allSettled([trial.run(world), trial.run(world)]);
    await toCompletion(trial, world, "the run after two at once");
    return "two runs at once";
  });
}

/**
 * Lets the job die at its first step outside the process, then, each time in a new world, at its second, third and so
 * on until it lives to its end; each time it is then run again undisturbed, and the work is done once.
 * Returns the steps of the whole life, so that a test can say that it reached what it is about.
 */
export async function survivesDyingAtEveryStep<W extends JobWorld>(trial: JobTrial<W>): Promise<readonly string[]> {
  for (let n = 1; n <= MOST_STEPS; n++) {
    const death = deathAt(n);
    await inWorld(trial, async (world) => {
      await live(trial, world, death);
      const lived = death.happened ? `a death at step ${n} (${death.steps.at(-1)})` : "a whole life";
      await toCompletion(trial, world, `the run after ${lived}`);
      return lived;
    });
    if (!death.happened) return death.steps;
  }
  throw new Error(`the job took more than ${MOST_STEPS} steps: does it end?`);
}

/** A job with more steps than this should be several. */
const MOST_STEPS = 200;
/** Runs until a job must be done. */
const MOST_RUNS = 20;

/** One life of the job, to its end (through later runs, if it asks for some) or to its death. */
async function live<W extends JobWorld>(trial: JobTrial<W>, world: W, death: Death): Promise<void> {
  const ports = Object.entries(world.ports ?? {}).map(([name, port]) => [name, death.port(name, port)] as const);
  const seen = { ...world, db: death.database(world.db), ports: Object.fromEntries(ports) };
  try {
    await toCompletion(trial, seen, "the first life", () => death.happened);
  } catch (error) {
    if (!death.happened) throw error;
  }
  await death.quiet();
}

/** Runs the job as the queue would until it says that it is done, or until it is dead, whatever it says then. */
async function toCompletion<W extends JobWorld>(
  trial: JobTrial<W>,
  world: W,
  what: string,
  dead: () => boolean = () => false,
): Promise<void> {
  let outcome: Outcome | null = null;
  for (let run = 0; run < MOST_RUNS; run++) {
    try {
      outcome = await trial.run(world);
    } catch (cause) {
      throw new Error(`${what} failed: ${(cause as Error).message}`, { cause });
    }
    if (outcome.outcome === "done" || dead()) return;
    if (outcome.outcome === "later") await moveClockTo(world.clock, outcome.at);
  }
  throw new Error(`${what} is not done after ${MOST_RUNS} runs; the last one said ${JSON.stringify(outcome)}`);
}

async function moveClockTo(clock: FakeClock, at: Date): Promise<void> {
  await clock.advance(Math.max(at.getTime() - clock.now().getTime(), 0));
}

/** Does `work`, which says what happened in it, in a new world and looks whether all is well there. */
async function inWorld<W extends JobWorld>(trial: JobTrial<W>, work: (world: W) => Promise<string>): Promise<void> {
  const world = await trial.setup();
  try {
    const what = await work(world);
    await trial.reconcile?.(world);
    try {
      await trial.assert(world);
    } catch (cause) {
      throw new Error(`all is not well after ${what}: ${(cause as Error).message}`, { cause });
    }
  } finally {
    await trial.teardown(world);
  }
}
