import type { Driver } from "../../infra/drivers/driver.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import type { Chance } from "./chance.ts";

export interface SlowSupplierOptions {
  driver: Driver;
  /** Of nobody: a request that was sent arrives, whoever dies meanwhile. */
  clock: Clock;
  chance: Chance;
  note(actor: string, action: string, outcome: string): void;
}

/** A supplier whose answers take time, sometimes more than anybody waits for; what was asked takes effect all the same. */
export class SlowSupplier implements Driver {
  /** Share of calls that take up to `slowestMs`. */
  slowness = 0;
  slowestMs = 40_000;
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
    await this.#onItsWay();
    const answer = await this.#options.driver.launch(order, signal);
    await this.#answered("launch", order.orderId, answer.outcome);
    return answer;
  }

  async observe(orderId: string, signal: AbortSignal): ReturnType<Driver["observe"]> {
    await this.#onItsWay();
    const answer = await this.#options.driver.observe(orderId, signal);
    await this.#answered("observe", orderId, answer.state);
    return answer;
  }

  async terminate(orderId: string, signal: AbortSignal): ReturnType<Driver["terminate"]> {
    await this.#onItsWay();
    const answer = await this.#options.driver.terminate(orderId, signal);
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
    const { chance, clock } = this.#options;
    return clock.sleep(chance.happens(this.slowness) ? chance.between(1, this.slowestMs) : chance.between(1, 40));
  }
}
