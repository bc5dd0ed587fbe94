import type { Driver, LaunchOrder, LaunchOutcome, Observation, OfferFact } from "../driver.ts";
import type { SimulatedMarket } from "./market.ts";

/** How often a supplier behaves badly, each as a chance in [0, 1]. */
export interface Misbehaviour {
  /** A launch is refused for want of capacity although there is some. */
  noCapacity: number;
  /** A launch takes effect and its answer is lost. */
  lostReply: number;
  /** A launch is lost on its way. */
  lostRequest: number;
  /** A machine comes up, is reported as running, and its runner never connects. */
  mute: number;
  /** An observe, terminate or list is not answered. */
  timeout: number;
  /** A terminate is answered with `gone`, and so is observe from then on, though the order runs on. */
  lie: number;
}

export interface SimulatedDriverOptions {
  market: SimulatedMarket;
  /** Seeded, in [0, 1). */
  random: () => number;
  supplier?: string;
  misbehaviour?: Partial<Misbehaviour>;
}

/** The simulated market as a supplier. It has no state of its own, but for the lies that it has told. */
export class SimulatedDriver implements Driver {
  readonly supplier: string;
  /** May be changed at any time. */
  misbehaviour: Misbehaviour;
  /** While true nothing is answered, and nothing takes effect. */
  silent = false;
  readonly #market: SimulatedMarket;
  readonly #random: () => number;
  readonly #lies = new Set<string>();

  constructor({ market, random, supplier = "simulated", misbehaviour }: SimulatedDriverOptions) {
    this.#market = market;
    this.#random = random;
    this.supplier = supplier;
    this.misbehaviour = { noCapacity: 0, lostReply: 0, lostRequest: 0, mute: 0, timeout: 0, lie: 0, ...misbehaviour };
  }

  /** Orders that it has called gone although they run. */
  get lies(): ReadonlySet<string> {
    return this.#lies;
  }

  async offers(signal: AbortSignal): Promise<OfferFact[]> {
    if (this.silent) return unanswered(signal);
    return this.#market.offers();
  }

  async launch(order: LaunchOrder): Promise<LaunchOutcome> {
    if (this.silent || this.#happens("lostRequest")) return { outcome: "unknown", message: "no answer" };
    const seen = this.#market.stateOf(order.orderId) !== "never_seen"; // what was taken is not refused when it is repeated
    if (this.#happens("noCapacity") && !seen) return { outcome: "refused", reason: "no_capacity", message: "sold out" };
    const taken = this.#market.launch(order, this.#happens("mute"));
    if (this.#happens("lostReply")) return { outcome: "unknown", message: "the answer was lost" };
    switch (taken) {
      case "taken":
        return { outcome: "accepted" };
      case "no_capacity":
        return { outcome: "refused", reason: "no_capacity", message: "sold out" };
      case "no_such_kind":
        return { outcome: "refused", reason: "supplier_error", message: "not sold any more" };
      case "ended":
        return { outcome: "refused", reason: "supplier_error", message: "this order was ended before" };
    }
  }

  async observe(orderId: string): Promise<Observation> {
    if (this.silent || this.#happens("timeout")) return { state: "unknown", message: "no answer" };
    if (this.#lies.has(orderId)) return { state: "gone" };
    const state = this.#market.stateOf(orderId);
    const reclaimAt = this.#market.orders.get(orderId)?.reclaimAt;
    return reclaimAt && state !== "gone" ? { state: "reclaiming", noticeAt: reclaimAt } : { state };
  }

  async terminate(orderId: string): Promise<"terminating" | "gone" | "unknown"> {
    if (this.silent || this.#happens("timeout")) return "unknown";
    if (this.#happens("lie") && !this.#lies.has(orderId)) {
      this.#lies.add(orderId);
      return "gone";
    }
    this.#lies.delete(orderId);
    this.#market.end(orderId);
    return "gone";
  }

  async list(): Promise<string[] | null> {
    if (this.silent || this.#happens("timeout")) return null;
    return this.#market.live.map((order) => order.id);
  }

  async close(): Promise<void> {}

  #happens(what: keyof Misbehaviour): boolean {
    return this.misbehaviour[what] > 0 && this.#random() < this.misbehaviour[what];
  }
}

/** As a request whose answer never comes. */
function unanswered(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("not answered in time")), { once: true });
  });
}
