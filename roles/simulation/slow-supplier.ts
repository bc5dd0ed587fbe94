import type { Driver, LaunchOutcome } from "../../infra/drivers/driver.ts";
import type { SimulatedMarket } from "../../infra/drivers/simulated/market.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { Chance } from "./chance.ts";
import type { HappeningCounter } from "./happenings.ts";

export interface SlowSupplierOptions {
  driver: Driver;
  /** What becomes of the calls; only looked at. */
  market: Pick<SimulatedMarket, "stateOf" | "orders">;
  /** Of nobody: a request that was sent arrives, whoever dies meanwhile. */
  clock: Clock;
  chance: Chance;
  note(actor: string, action: string, outcome: string): void;
  count: HappeningCounter["count"];
}

/**
 * A supplier whose answers take time, sometimes more than anybody waits for; what was asked takes effect all the same.
 * Some launches it takes without being sure of them.
 */
export class SlowSupplier implements Driver {
  /** Share of calls that take up to `slowestMs`. */
  slowness = 0;
  slowestMs = 40_000;
  /** Share of launches that are taken and said to be pending. */
  vagueness = 0.2;
  readonly #options: SlowSupplierOptions;

  constructor(options: SlowSupplierOptions) {
    this.#options = options;
  }

  get supplier(): string {
    return this.#options.driver.supplier;
  }

  offers(signal: AbortSignal): ReturnType<Driver["offers"]> {
    return this.#options.driver.offers(signal);
  }

  async launch(order: Parameters<Driver["launch"]>[0], signal: AbortSignal): ReturnType<Driver["launch"]> {
    const { driver, market, chance, count } = this.#options;
    await this.#onItsWay();
    const before = market.stateOf(order.orderId);
    const said = await driver.launch(order, signal);
    const vague = said.outcome === "accepted" && chance.happens(this.vagueness);
    const answer: LaunchOutcome = vague ? { outcome: "pending" } : said;
    const known = market.stateOf(order.orderId) !== "never_seen";
    count("supplier", launchCalled(answer, known));
    if (before !== "never_seen") count("supplier", "launch repeated");
    else if (known && market.orders.get(order.orderId)!.kind.bootMs > LIMITS.bootTimeoutMs)
      count("supplier", "boot too slow");
    await this.#answered("launch", order.orderId, answer.outcome);
    return answer;
  }

  async observe(orderId: string, signal: AbortSignal): ReturnType<Driver["observe"]> {
    await this.#onItsWay();
    const answer = await this.#options.driver.observe(orderId, signal);
    this.#options.count("supplier", `seen ${answer.state}`);
    await this.#answered("observe", orderId, answer.state);
    return answer;
  }

  async terminate(orderId: string, signal: AbortSignal): ReturnType<Driver["terminate"]> {
    await this.#onItsWay();
    const { driver, market, count } = this.#options;
    const answer = await driver.terminate(orderId, signal);
    const lied = answer === "gone" && market.stateOf(orderId) !== "gone";
    count("supplier", lied ? "end lied about" : `end ${answer}`);
    await this.#answered("terminate", orderId, answer);
    return answer;
  }

  async list(signal: AbortSignal): ReturnType<Driver["list"]> {
    await this.#onItsWay();
    const answer = await this.#options.driver.list(signal);
    await this.#answered("list", "", answer === null ? "unknown" : String(answer.length));
    return answer;
  }

  close(): Promise<void> {
    return this.#options.driver.close();
  }

  #onItsWay(): Promise<void> {
    return this.#pass();
  }

  async #answered(call: string, orderId: string, outcome: string): Promise<void> {
    this.#options.note("supplier", `${call} ${orderId}`, outcome);
    await this.#pass();
  }

  #pass(): Promise<void> {
    const { chance, clock, count } = this.#options;
    const ms = chance.happens(this.slowness) ? chance.between(1, this.slowestMs) : chance.between(1, 40);
    if (ms > LIMITS.launchTimeoutMs) count("supplier", "slower than anybody waits");
    return clock.sleep(ms);
  }
}

/** `known`: the supplier has the order, or had it. */
function launchCalled(answer: LaunchOutcome, known: boolean): string {
  if (answer.outcome === "refused") return `launch refused: ${answer.reason}`;
  if (answer.outcome === "unknown") return known ? "launch's answer lost" : "launch lost";
  return `launch ${answer.outcome}`;
}
