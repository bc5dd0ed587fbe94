import type { Misbehaviour } from "../../infra/drivers/simulated/simulated-driver.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { Chance } from "./chance.ts";
import { READY } from "./memory-store.ts";
import { WELL } from "./receivers.ts";
import { SIMULATED_KINDS } from "./settings.ts";
import type { World } from "./world.ts";

/** Longer than anybody waits for a boot. */
const SLOW_BOOT_MS = 100_000;
/** Shorter than what nobody can remove is left lying, several times. */
const STORE_TROUBLE_MS = 300_000;
const HONEST: Misbehaviour = { noCapacity: 0, lostReply: 0, lostRequest: 0, mute: 0, timeout: 0, lie: 0 };

/** What goes wrong at the supplier and with hosts. Each says what it did; null when there was nobody to do it to. */
export class OutsideMischief {
  readonly #world: World;
  readonly #chance: Chance;

  constructor(world: World, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
  }

  /** All is well from now on. */
  end(): void {
    const { driver, supplier, market, receivers, results } = this.#world;
    receivers.moods = WELL;
    results.moods = READY;
    driver.silent = false;
    driver.misbehaviour = { ...HONEST };
    supplier.slowness = 0;
    for (const kind of SIMULATED_KINDS) market.change(kind.sku, kind.region, { ...kind, taken: 0 });
  }

  troubleSupplier(): string {
    const { driver, supplier } = this.#world;
    // What goes wrong at the supplier hides what goes wrong elsewhere: nothing runs long enough.
    if (this.#chance.happens(0.4)) {
      driver.misbehaviour = { ...HONEST };
      supplier.slowness = 0;
      return "the supplier is as it should be";
    }
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

  troubleReceivers(): string {
    const some = () => this.#chance.pick([0, 0, 0.2, 0.7]);
    this.#world.receivers.moods = this.#chance.happens(0.4)
      ? WELL
      : { away: some(), refuses: some(), lies: some(), slow: some() / 2, mute: some(), leaves: some() / 20 };
    return `receivers: ${JSON.stringify(this.#world.receivers.moods)}`;
  }

  troubleStore(): string {
    const { outside, results } = this.#world;
    const some = () => this.#chance.pick([0, 0.2, 0.6]);
    const moods = { refuses: some(), losesAnswers: some(), slow: some() };
    const ms = this.#chance.between(5_000, STORE_TROUBLE_MS);
    results.moods = moods;
    void outside.sleep(ms).then(() => {
      results.moods = READY;
    });
    return `store: ${JSON.stringify(moods)} for ${ms} ms`;
  }

  silenceSupplier(): string {
    const ms = this.#chance.between(1_000, 120_000);
    this.#world.happenings.count("supplier", "silent for a while");
    this.#forAWhile(ms, 1, (silence) => {
      this.#world.driver.silent = silence > 0;
    });
    return `the supplier is silent for ${ms} ms`;
  }

  changeCapacity(): string {
    const kind = this.#chance.pick(SIMULATED_KINDS);
    const machines = this.#chance.between(0, kind.machines + 1);
    const taken = this.#chance.between(0, machines);
    const bootMs = this.#chance.pick([0, kind.bootMs, kind.bootMs, SLOW_BOOT_MS]);
    this.#world.market.change(kind.sku, kind.region, { ...kind, machines, taken, bootMs });
    return `${kind.sku} in ${kind.region} has ${machines} machines, ${taken} taken, and boots in ${bootMs} ms`;
  }

  reclaim(): string | null {
    const orderId = this.#someOrder();
    if (!orderId) return null;
    const noticeMs = this.#chance.happens(0.3) ? 0 : this.#chance.between(5_000, 120_000);
    this.#world.happenings.count("supplier", noticeMs > 0 ? "takes back with notice" : "takes back without notice");
    void this.#world.market.reclaim(orderId, noticeMs);
    return `${orderId} is reclaimed in ${noticeMs} ms`;
  }

  loseMachine(): string | null {
    const orderId = this.#someOrder();
    if (!orderId) return null;
    this.#world.market.end(orderId);
    this.#world.happenings.count("supplier", "machine gone");
    return `the machine of ${orderId} is gone`;
  }

  cut(): string | null {
    const { connected } = this.#world.network;
    if (connected.length === 0) return null;
    const orderId = this.#chance.pick(connected);
    this.#world.network.cut(orderId);
    return `the stream of ${orderId} breaks`;
  }

  cutOff(): string | null {
    const orderId = this.#someOrder();
    if (!orderId) return null;
    const ms = this.#chance.between(1_000, 150_000);
    void this.#world.network.cutOff(orderId, ms);
    return `the host of ${orderId} is cut off for ${ms} ms`;
  }

  /**
   * A host whose command runs is cut off about as long as its lease, and its supplier hardly ends anything meanwhile: too
   * quick a verdict would let the next generation run beside it.
   */
  cutOffTheBusy(): string | null {
    const { live } = this.#world.market;
    const busy = live.filter(({ runner }) => runner?.running);
    if (busy.length === 0) return null;
    const { id } = this.#chance.pick(busy);
    const ms = this.#chance.between(LIMITS.leaseMs - 30_000, LIMITS.leaseMs + 30_000);
    void this.#world.network.cutOff(id, ms);
    const { driver } = this.#world;
    this.#forAWhile(ms, 0.9, (timeout) => {
      driver.misbehaviour = { ...driver.misbehaviour, timeout };
    });
    return `the host of ${id} is cut off for ${ms} ms at work`;
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
