import { seededRandom } from "../../infra/drivers/simulated/seeded-random.ts";

/** Everything that is left to chance in a simulated world comes from one of these. */
export class Chance {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = seededRandom(seed);
  }

  /** A number in [0, 1). */
  readonly number = (): number => this.#next();

  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.#next() * (to - from + 1));
  }

  /** True once in `1 / share` times. */
  happens(share: number): boolean {
    return this.#next() < share;
  }

  pick<T>(among: readonly T[]): T {
    return among[Math.floor(this.#next() * among.length)]!;
  }

  /** One of the entries, each as often as its weight says. */
  weighted<T>(entries: readonly (readonly [weight: number, entry: T])[]): T {
    let at = this.#next() * entries.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, entry] of entries) {
      at -= weight;
      if (at < 0) return entry;
    }
    return entries.at(-1)![1];
  }

  readonly bytes = (size: number): Uint8Array => Uint8Array.from({ length: size }, () => this.between(0, 255));
}
