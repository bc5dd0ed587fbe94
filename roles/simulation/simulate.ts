import { seedIds } from "../../infra/kernel/ids.ts";
import { Chance } from "./chance.ts";
import { leftOver, unsettled } from "./ending.ts";
import type { Happenings } from "./happenings.ts";
import { Judge, type Looks } from "./judge.ts";
import { Mischief } from "./mischief.ts";
import type { SimulationDatabase } from "./simulation-database.ts";
import { Trace } from "./trace.ts";
import { World } from "./world.ts";

export interface SimulationOptions {
  database: SimulationDatabase;
  seed: number;
  /** How long things go wrong, in simulated milliseconds; then all becomes quiet and has to come to its end. */
  durationMs: number;
  /** Told every line of the trace. */
  listen?: ((line: string) => void) | undefined;
  /** Every so many looks is at all sentences over everything. */
  fullLookEvery?: number | undefined;
  /** Ends the simulation, with the signal's reason. */
  signal?: AbortSignal | undefined;
}

export interface Simulated {
  seed: number;
  /** SHA-256 of the trace and of the tables at the end: equal for two runs of a seed. */
  hash: string;
  workloads: number;
  /** Transactions, and statements outside one. */
  operations: number;
  /** Entries of the trace. */
  entries: number;
  looks: Looks;
  /** Until everything had come to its end. */
  simulatedMs: number;
  /** How workloads ended, how often each. */
  ends: Record<string, number>;
  /** Types of the workloads' events, how often each. */
  events: Record<string, number>;
  /** What came up besides, how often each. */
  happenings: Happenings;
}

/** Something was not true that always must be. */
export class SimulationFailure extends Error {
  override readonly name = "SimulationFailure";
  readonly seed: number;

  constructor(seed: number, durationMs: number, wrong: readonly string[], last: readonly string[]) {
    super(
      [
        `seed ${seed} fails; again with: nodus sim --seed ${seed} --hours ${durationMs / HOUR_MS}`,
        ...wrong,
        "the last that happened:",
        ...last,
      ].join("\n"),
    );
    this.seed = seed;
  }
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** How many workloads come in an hour, about. */
const WORKLOADS_AN_HOUR = 60;
/** How often somebody does something about webhooks. */
const OWNER_ACTS_EVERY_MS = 90_000;
/** How often something goes wrong. */
const MISCHIEF_EVERY_MS = 30_000;
/** How long after things stop going wrong the customers wait before they ask for the end of what is left. */
const PATIENCE_MS = HOUR_MS;
/** How long everything may then take to end. */
const LAST_MS = 30 * MINUTE_MS;
/** After so many looks at what was written, all is looked at, unless it is said otherwise. */
const FULL_LOOK_EVERY = 200;
const TEAMS = 5;

/**
 * As `simulate`; a world in which something is not as it must be is lived through again, with everything looked at
 * after each operation that wrote what a sentence reads, so that the failure names the very operation.
 */
export async function simulateExactly(options: SimulationOptions): Promise<Simulated> {
  try {
    return await simulate(options);
  } catch (error) {
    if (!(error instanceof SimulationFailure)) throw error;
    await simulate({ ...options, listen: undefined, fullLookEvery: 1 });
    throw error;
  }
}

/**
 * Lives through a world of a seed. Resolves when everything in it has come to its end as it should.
 *
 * @throws SimulationFailure with what was not true and what happened last
 */
export async function simulate(options: SimulationOptions): Promise<Simulated> {
  const { database, seed, durationMs, signal } = options;
  await database.empty();
  const trace = new Trace(options.listen ?? null);
  const fate = new Chance(seed);
  const restoreIds = seedIds(new Chance(seed ^ 0x1d5).bytes);
  try {
    const world = new World({ db: database.db, seed, trace, processes: fate.pick([1, 1, 1, 2, 2, 3]), signal });
    const judge = new Judge(world, database, options.fullLookEvery ?? FULL_LOOK_EVERY);
    const insist = (wrong: readonly string[]) => {
      if (wrong.length > 0) throw new SimulationFailure(seed, durationMs, wrong, trace.last());
    };
    const look = async () => insist(await judge.look());
    try {
      await live(world, fate, durationMs, look);
      insist(await judge.everything());
      insist(await leftOver(database.db, world));
    } catch (error) {
      if (error instanceof SimulationFailure || signal?.aborted) throw error;
      throw new SimulationFailure(seed, durationMs, [(error as Error).stack ?? String(error)], trace.last());
    }
    world.note("end", await database.digest(), "");
    return await resultOf(options, world, judge, trace);
  } finally {
    restoreIds();
  }
}

async function live(world: World, fate: Chance, durationMs: number, look: () => Promise<void>): Promise<void> {
  const { tenants, owners, outside } = world;
  const mischief = new Mischief(world, fate, MISCHIEF_EVERY_MS);
  let busy = true;
  world.begin(() => mischief.restartProcesses());
  world.begin(async () => {
    await owners.open();
    await tenants.open(TEAMS);
    while (busy) {
      await outside.sleep(fate.between(1, (2 * HOUR_MS) / (WORKLOADS_AN_HOUR * 1.3)));
      if (busy) world.begin(() => tenants.act());
    }
  });
  world.begin(async () => {
    while (busy) {
      await outside.sleep(fate.between(1, 2 * OWNER_ACTS_EVERY_MS));
      if (busy) world.begin(() => owners.act());
    }
  });
  world.begin(() => mischief.run());
  await world.pass(durationMs, look);

  busy = false;
  mischief.end();
  world.begin(() => tenants.makeRich());
  world.begin(() => owners.askForTheRest());
  if (await settles(world, durationMs + PATIENCE_MS, look)) return;
  world.begin(() => tenants.cancelAll());
  await settles(world, durationMs + PATIENCE_MS + LAST_MS, look);
}

/** Lets time pass until every workload is settled, and the last jobs are done; false when that does not come by then. */
async function settles(world: World, untilMs: number, look: () => Promise<void>): Promise<boolean> {
  while (world.passedMs < untilMs) {
    await world.pass(world.passedMs + 2 * MINUTE_MS, look);
    if ((await unsettled(world.db)) > 0) continue;
    await world.pass(world.passedMs + 5 * MINUTE_MS, look);
    return true;
  }
  return false;
}

async function resultOf(
  { database, seed }: SimulationOptions,
  world: World,
  judge: Judge,
  trace: Trace,
): Promise<Simulated> {
  return {
    seed,
    hash: trace.hash(),
    workloads: world.tenants.accepted,
    operations: world.operations,
    entries: trace.count,
    looks: judge.looks,
    simulatedMs: world.passedMs,
    ends: await counts(database, "select coalesce(reason, status) as name, count(*) from compute.workload group by 1"),
    events: await counts(database, "select type as name, count(*) from compute.workload_event group by 1"),
    happenings: await world.happenings.all(database.db),
  };
}

async function counts({ db }: SimulationDatabase, text: string): Promise<Record<string, number>> {
  const rows = await db.sql<{ name: string; count: bigint }>(`${text} order by 1`);
  return Object.fromEntries(rows.map(({ name, count }) => [name, Number(count)]));
}
