import type { Clock } from "../../kernel/clock.ts";
import type { OfferFact } from "../driver.ts";
import type { RunnerConnect } from "./runner-transport.ts";
import type { Scripts } from "./script.ts";
import { ScriptedRunner } from "./scripted-runner.ts";
import { drawFor } from "./seeded-random.ts";

/** One kind of machine on the market. */
export interface MachineKind extends Omit<OfferFact, "capacity" | "simulated"> {
  /** How many the supplier says it has. */
  machines: number;
  /** How many of these others have taken without the supplier having noticed. */
  taken?: number;
  /** Orders that one machine takes. */
  ordersPerMachine?: number;
  bootMs: number;
  /** The price moves up to this share of itself up and down, anew every hour. */
  priceSwing?: number;
}

export interface MarketOptions {
  clock: Clock;
  seed: number;
  kinds: readonly MachineKind[];
  connect: RunnerConnect;
  scripts: Scripts;
  /** The clock of an order's machine; the market's own unless given. */
  hostClock?: ((orderId: string) => Clock) | undefined;
  /** How often runners send a heartbeat. */
  heartbeatIntervalMs?: number | undefined;
}

export interface MarketOrder {
  readonly id: string;
  readonly kind: MachineKind;
  state: "starting" | "running" | "gone";
  runner: ScriptedRunner | null;
  /** The machine comes up and its runner never does. */
  mute: boolean;
  reclaimAt: Date | null;
}

const HOUR_MS = 3_600_000;

function keyOf(kind: { region: string; sku: string }): string {
  return `${kind.region}/${kind.sku}`;
}

/**
 * The simulated world behind the simulated driver: machines, prices and what runs on them. It outlives drivers and
 * platforms as a real supplier does, and all of its chances come from its seed.
 */
export class SimulatedMarket {
  readonly #options: MarketOptions;
  readonly #kinds: Map<string, MachineKind>;
  readonly #orders = new Map<string, MarketOrder>();
  /** Orders that run, by kind. */
  readonly #live = new Map<string, number>();
  /** Ids that were ended before they came. */
  readonly #endedUnseen = new Set<string>();

  constructor(options: MarketOptions) {
    this.#options = options;
    this.#kinds = new Map(options.kinds.map((kind) => [keyOf(kind), kind]));
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  get orders(): ReadonlyMap<string, MarketOrder> {
    return this.#orders;
  }

  /** Orders that cost money now. */
  get live(): MarketOrder[] {
    return [...this.#orders.values()].filter((order) => order.state !== "gone");
  }

  /** What is known of an order. */
  stateOf(orderId: string): MarketOrder["state"] | "never_seen" {
    return this.#orders.get(orderId)?.state ?? (this.#endedUnseen.has(orderId) ? "gone" : "never_seen");
  }

  offers(): OfferFact[] {
    return [...this.#kinds.values()].map((kind) => this.#offer(kind));
  }

  /** Changes a kind, such as its machines; a kind without machines is no longer offered. */
  change(sku: string, region: string, change: Partial<MachineKind>): void {
    const key = keyOf({ region, sku });
    const kind = { ...this.#kinds.get(key)!, ...change };
    if (kind.machines > 0) this.#kinds.set(key, kind);
    else this.#kinds.delete(key);
  }

  /** Starts an order unless its id was seen before; an ended id is not started again. */
  launch(
    order: { orderId: string; sku: string; region: string; token: string },
    mute: boolean,
  ): "taken" | "no_capacity" | "no_such_kind" | "ended" {
    const state = this.stateOf(order.orderId);
    if (state !== "never_seen") return state === "gone" ? "ended" : "taken";
    const kind = this.#kinds.get(keyOf(order));
    if (!kind) return "no_such_kind";
    const room = (kind.machines - (kind.taken ?? 0)) * (kind.ordersPerMachine ?? 1);
    if (this.#liveOn(kind) >= room) return "no_capacity";
    const made: MarketOrder = { id: order.orderId, kind, state: "starting", runner: null, mute, reclaimAt: null };
    this.#orders.set(order.orderId, made);
    this.#live.set(keyOf(kind), this.#liveOn(kind) + 1);
    void this.#boot(made, order.token);
    return "taken";
  }

  /** Ends an order at once, and for good: an id that was never seen counts as ended from now on. */
  end(orderId: string): void {
    const order = this.#orders.get(orderId);
    if (!order) return void this.#endedUnseen.add(orderId);
    if (order.state === "gone") return;
    order.state = "gone";
    this.#live.set(keyOf(order.kind), this.#liveOn(order.kind) - 1);
    order.runner?.kill();
  }

  /** Its machine died before anything of the order was written down, and knows nothing of it when it is back. */
  forget(orderId: string): void {
    if (!this.#orders.has(orderId)) return;
    this.end(orderId);
    this.#orders.delete(orderId);
  }

  #liveOn(kind: MachineKind): number {
    return this.#live.get(keyOf(kind)) ?? 0;
  }

  /** The supplier says that it will take a machine back, and does. */
  async reclaim(orderId: string, noticeMs: number): Promise<void> {
    const order = this.#orders.get(orderId);
    if (!order || order.state === "gone") return;
    order.reclaimAt = new Date(this.clock.now().getTime() + noticeMs);
    await this.clock.sleep(noticeMs);
    this.end(orderId);
  }

  async #boot(order: MarketOrder, token: string): Promise<void> {
    const { clock, connect, scripts, hostClock, heartbeatIntervalMs } = this.#options;
    await clock.sleep(order.kind.bootMs);
    if (order.state === "gone") return;
    order.state = "running";
    if (order.mute) return;
    const onOver = () => this.end(order.id);
    const own = { clock: hostClock?.(order.id) ?? clock, heartbeatIntervalMs };
    order.runner = new ScriptedRunner({ orderId: order.id, token, ...own, connect, scripts, onOver });
  }

  #offer(kind: MachineKind): OfferFact {
    const { machines, ordersPerMachine = 1, taken: _, bootMs: __, priceSwing: ___, ...said } = kind;
    return {
      ...said,
      rateMicrosPerHour: this.#price(kind),
      simulated: true,
      capacity: {
        key: keyOf(kind),
        cpuMillis: kind.vcpus * 1000 * machines,
        memoryMb: kind.hostMemoryGb * 1024 * machines,
        gpus: kind.gpuCount * machines,
        slots: machines * ordersPerMachine,
      },
    };
  }

  /** The same within an hour, whoever asks. */
  #price(kind: MachineKind): bigint {
    if (!kind.priceSwing) return kind.rateMicrosPerHour;
    const hour = Math.floor(this.clock.now().getTime() / HOUR_MS);
    const swing = (drawFor(this.#options.seed, `${keyOf(kind)}/${hour}`) * 2 - 1) * kind.priceSwing;
    return (kind.rateMicrosPerHour * BigInt(Math.round((1 + swing) * 1_000_000))) / 1_000_000n;
  }
}
