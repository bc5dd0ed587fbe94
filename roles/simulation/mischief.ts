import { LIMITS } from "../../infra/kernel/limits.ts";
import type { Chance } from "./chance.ts";
import { OutsideMischief } from "./outside-mischief.ts";
import type { World } from "./world.ts";

/** Longest a process stays away. */
const DOWN_MS = 30_000;

/** Everything that goes wrong around a platform, in an order that chance decides, until it is told to stop. */
export class Mischief {
  readonly #world: World;
  readonly #chance: Chance;
  readonly #outside: OutsideMischief;
  /** How often something happens. */
  readonly #everyMs: number;
  #over = false;

  constructor(world: World, chance: Chance, everyMs: number) {
    this.#world = world;
    this.#chance = chance;
    this.#outside = new OutsideMischief(world, chance);
    this.#everyMs = everyMs;
  }

  async run(): Promise<void> {
    const { outside } = this.#world;
    while (!this.#over) {
      await outside.sleep(this.#chance.between(1, 2 * this.#everyMs));
      if (!this.#over) this.#act();
    }
  }

  /** Keeps as many processes running as there should be. */
  async restartProcesses(): Promise<void> {
    const world = this.#world;
    for (;;) {
      await world.outside.sleep(1_000);
      if (world.missing === 0) continue;
      if (!this.#over) await world.outside.sleep(this.#chance.between(0, DOWN_MS));
      while (world.missing > 0) world.startProcess();
    }
  }

  /** All is well from now on. */
  end(): void {
    this.#over = true;
    const world = this.#world;
    world.note("mischief", "ends", "");
    world.databaseFaults = 0;
    world.lostWakeups = 0;
    world.queue.faults.duplicate = 0;
    world.queue.faults.loss = 0;
    world.queue.faults.longestDelayMs = 50;
    for (const process of world.alive) {
      process.death.comesIn(Number.POSITIVE_INFINITY);
      process.dieIn(null);
    }
    this.#outside.end();
  }

  #act(): void {
    const act = this.#chance.weighted<() => string | null>([
      [3, () => this.#crash()],
      [3, () => this.#crashInJob()],
      [1, () => this.#stepClock()],
      [1, () => this.#setClockWrong()],
      [1, () => this.#flushQueue()],
      [1, () => this.#floodQueue()],
      [2, () => this.#troubleQueue()],
      [2, () => this.#troubleDatabase()],
      [3, () => this.#outside.troubleSupplier()],
      [1, () => this.#outside.silenceSupplier()],
      [3, () => this.#outside.changeCapacity()],
      [2, () => this.#outside.reclaim()],
      [2, () => this.#outside.loseMachine()],
      [3, () => this.#outside.cut()],
      [2, () => this.#outside.cutOff()],
      [4, () => this.#outside.cutOffTheBusy()],
      [1, () => this.#loseWakeups()],
      [3, () => this.#outside.troubleReceivers()],
      [3, () => this.#outside.troubleStore()],
    ]);
    const what = act();
    if (what !== null) this.#world.note("mischief", what, "");
  }

  #crash(): string | null {
    const { alive } = this.#world;
    if (alive.length === 0) return null;
    const steps = this.#chance.between(1, 25);
    this.#chance.pick(alive).death.comesIn(steps);
    return `a process dies in ${steps} steps`;
  }

  /** A job is over after a handful of steps: a death after any number of steps hardly ever meets the rare ones. */
  #crashInJob(): string | null {
    const { alive } = this.#world;
    if (alive.length === 0) return null;
    const fatal = { job: this.#chance.pick(alive[0]!.jobs), steps: this.#chance.pick([1, 2, 3, 3, 4, 4, 5, 7]) };
    for (const process of alive) process.dieIn(fatal);
    return `every process dies in ${fatal.job} at step ${fatal.steps}`;
  }

  #stepClock(): string {
    const ms = this.#chance.weighted([
      [4, this.#chance.between(-3_000, 3_000)],
      [2, this.#chance.between(5_000, 900_000)],
      [1, -this.#chance.between(5_000, 120_000)],
    ]);
    this.#stepBy(ms);
    return `the wall clock steps by ${ms} ms`;
  }

  /** For a while; then somebody puts it right. */
  #setClockWrong(): string {
    const ms = this.#chance.pick([-1, 1]) * this.#chance.between(60_000, 1_800_000);
    const forMs = this.#chance.between(5_000, 300_000);
    this.#stepBy(ms);
    void this.#world.outside.sleep(forMs).then(() => this.#stepBy(-ms));
    return `the wall clock is wrong by ${ms} ms for ${forMs} ms`;
  }

  #stepBy(ms: number): void {
    this.#world.clock.stepWall(ms);
    const far = Math.abs(ms) > LIMITS.clockStepMs;
    this.#world.happenings.count("platform", `clock set ${ms < 0 ? "back" : "forward"}${far ? "" : " a little"}`);
  }

  /** Again and again, for at most times there is nothing in it. */
  #flushQueue(): string {
    const times = this.#chance.between(1, 40);
    void this.#flushEvery(500, times);
    return `the queue is emptied ${times} times`;
  }

  async #flushEvery(ms: number, times: number): Promise<void> {
    for (let n = 0; n < times && !this.#over; n++) {
      this.#world.queue.flush();
      await this.#world.outside.sleep(ms);
    }
  }

  #floodQueue(): string {
    const times = this.#chance.between(1, 10);
    this.#world.queue.flood(times);
    return `the queue delivers its latest jobs ${times} times more`;
  }

  #troubleQueue(): string {
    const { faults } = this.#world.queue;
    faults.duplicate = this.#chance.pick([0, 0.1, 0.5]);
    faults.loss = this.#chance.pick([0, 0.05, 0.3]);
    faults.longestDelayMs = this.#chance.pick([50, 1_000, 20_000]);
    return `queue: ${JSON.stringify(faults)}`;
  }

  #troubleDatabase(): string {
    const share = this.#chance.pick([0.02, 0.2, 1]);
    const ms = this.#chance.between(200, share === 1 ? 5_000 : 30_000);
    this.#forAWhile(ms, share, (faults) => {
      this.#world.databaseFaults = faults;
    });
    return `the database fails ${share} for ${ms} ms`;
  }

  #loseWakeups(): string {
    this.#world.lostWakeups = this.#chance.pick([0, 0, 0.1, 1]);
    return `wake-ups are lost: ${this.#world.lostWakeups}`;
  }

  #forAWhile(ms: number, value: number, set: (value: number) => void): void {
    set(value);
    void this.#world.outside.sleep(ms).then(() => set(0));
  }
}
