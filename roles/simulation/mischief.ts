import type { Misbehaviour } from "../../infra/drivers/simulated/simulated-driver.ts";
import type { Chance } from "./chance.ts";
import { SIMULATED_KINDS } from "./settings.ts";
import type { World } from "./world.ts";

/** Longer than anybody waits for a boot. */
const SLOW_BOOT_MS = 100_000;
/** Longest a process stays away. */
const DOWN_MS = 30_000;

/** Everything that goes wrong around a platform, in an order that chance decides, until it is told to stop. */
export class Mischief {
  readonly #world: World;
  readonly #chance: Chance;
  /** How often something happens. */
  readonly #everyMs: number;
  #over = false;

  constructor(world: World, chance: Chance, everyMs: number) {
    this.#world = world;
    this.#chance = chance;
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
    world.driver.silent = false;
    world.supplier.slowness = 0;
    world.driver.misbehaviour = { ...HONEST };
    for (const process of world.alive) process.death.comesIn(Number.POSITIVE_INFINITY);
    for (const kind of SIMULATED_KINDS) world.market.change(kind.sku, kind.region, { ...kind, taken: 0 });
  }

  #act(): void {
    const act = this.#chance.weighted<() => string | null>([
      [4, () => this.#crash()],
      [1, () => this.#stepClock()],
      [1, () => this.#flushQueue()],
      [2, () => this.#troubleQueue()],
      [2, () => this.#troubleDatabase()],
      [3, () => this.#troubleSupplier()],
      [1, () => this.#silenceSupplier()],
      [3, () => this.#changeCapacity()],
      [2, () => this.#reclaim()],
      [2, () => this.#loseMachine()],
      [3, () => this.#cut()],
      [2, () => this.#cutOff()],
      [1, () => this.#loseWakeups()],
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

  #stepClock(): string {
    const ms = this.#chance.weighted([
      [4, this.#chance.between(-3_000, 3_000)],
      [2, this.#chance.between(5_000, 900_000)],
      [1, -this.#chance.between(5_000, 120_000)],
    ]);
    this.#world.clock.stepWall(ms);
    return `the wall clock steps by ${ms} ms`;
  }

  #flushQueue(): string {
    this.#world.queue.flush();
    return "the queue is emptied";
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

  #troubleSupplier(): string {
    const { driver, supplier } = this.#world;
    const some = () => this.#chance.pick([0, 0, 0, 0.1, 0.5]);
    driver.misbehaviour = {
      noCapacity: some(),
      lostReply: some(),
      lostRequest: some(),
      mute: some() / 2,
      timeout: some(),
      lie: some(),
    };
    supplier.slowness = this.#chance.pick([0, 0, 0.1, 0.4]);
    return `supplier: ${JSON.stringify(driver.misbehaviour)}, slow ${supplier.slowness}`;
  }

  #silenceSupplier(): string {
    const ms = this.#chance.between(1_000, 120_000);
    this.#forAWhile(ms, 1, (silence) => {
      this.#world.driver.silent = silence > 0;
    });
    return `the supplier is silent for ${ms} ms`;
  }

  #changeCapacity(): string {
    const kind = this.#chance.pick(SIMULATED_KINDS);
    const machines = this.#chance.between(0, kind.machines + 1);
    const taken = this.#chance.between(0, machines);
    const bootMs = this.#chance.pick([0, kind.bootMs, kind.bootMs, SLOW_BOOT_MS]);
    this.#world.market.change(kind.sku, kind.region, { ...kind, machines, taken, bootMs });
    return `${kind.sku} in ${kind.region} has ${machines} machines, ${taken} taken, and boots in ${bootMs} ms`;
  }

  #reclaim(): string | null {
    const orderId = this.#someOrder();
    if (!orderId) return null;
    const noticeMs = this.#chance.between(0, 60_000);
    void this.#world.market.reclaim(orderId, noticeMs);
    return `${orderId} is reclaimed in ${noticeMs} ms`;
  }

  #loseMachine(): string | null {
    const orderId = this.#someOrder();
    if (!orderId) return null;
    this.#world.market.end(orderId);
    return `the machine of ${orderId} is gone`;
  }

  #cut(): string | null {
    const { connected } = this.#world.network;
    if (connected.length === 0) return null;
    const orderId = this.#chance.pick(connected);
    this.#world.network.cut(orderId);
    return `the stream of ${orderId} breaks`;
  }

  #cutOff(): string | null {
    const orderId = this.#someOrder();
    if (!orderId) return null;
    const ms = this.#chance.between(1_000, 150_000);
    void this.#world.network.cutOff(orderId, ms);
    return `the host of ${orderId} is cut off for ${ms} ms`;
  }

  #loseWakeups(): string {
    this.#world.lostWakeups = this.#chance.pick([0, 0, 0.1, 1]);
    return `wake-ups are lost: ${this.#world.lostWakeups}`;
  }

  #someOrder(): string | null {
    const { live } = this.#world.market;
    return live.length === 0 ? null : this.#chance.pick(live).id;
  }

  #forAWhile(ms: number, value: number, set: (value: number) => void): void {
    set(value);
    void this.#world.outside.sleep(ms).then(() => set(0));
  }
}

const HONEST: Misbehaviour = { noCapacity: 0, lostReply: 0, lostRequest: 0, mute: 0, timeout: 0, lie: 0 };
