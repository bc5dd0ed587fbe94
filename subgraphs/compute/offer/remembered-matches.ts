import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { Match } from "./match-offers.ts";
import type { Offer } from "./offer.entity.ts";

/**
 * What stages were matched with, by their likeness, for as long as every offer says the same of them: the same offers,
 * the same suppliers silent, and a time between two at which a quarantine ends or a failed boot is forgotten.
 */
export class RememberedMatches {
  readonly #silent: string;
  readonly #fromMs: number;
  readonly #untilMs: number;
  readonly #matches = new Map<string, Match>();
  /** Of all matches together, which is what they cost. */
  #candidates = 0;

  constructor(offers: readonly Offer[], silentSuppliers: ReadonlySet<string>, now: Date) {
    this.#silent = nameOf(silentSuppliers);
    this.#fromMs = now.getTime();
    this.#untilMs = nextChange(offers, this.#fromMs);
  }

  /** Whether they are still true. A clock that was set back makes them untrue too. */
  holds(silentSuppliers: ReadonlySet<string>, now: Date): boolean {
    const ms = now.getTime();
    return ms >= this.#fromMs && ms < this.#untilMs && nameOf(silentSuppliers) === this.#silent;
  }

  /** The match of a likeness, made by `match` when it is not known. Nobody may change it. */
  of(likeness: string, match: () => Match): Match {
    const known = this.#matches.get(likeness);
    if (known) return known;
    const made = match();
    if (this.#candidates + made.ranked.length > LIMITS.rememberedCandidates || this.#matches.size >= MOST_LIKENESSES) {
      this.#matches.clear();
      this.#candidates = 0;
    }
    this.#matches.set(likeness, made);
    this.#candidates += made.ranked.length;
    return made;
  }
}

const MOST_LIKENESSES = 1_000;

function nameOf(suppliers: ReadonlySet<string>): string {
  return JSON.stringify([...suppliers].sort());
}

/** When time alone makes an offer say something else: its quarantine ends, or its failed boot is forgotten. */
function nextChange(offers: readonly Offer[], fromMs: number): number {
  let next = Number.POSITIVE_INFINITY;
  for (const { quarantinedUntil } of offers) {
    if (!quarantinedUntil) continue;
    const endsMs = quarantinedUntil.getTime();
    for (const ms of [endsMs, endsMs + LIMITS.failedBootMemoryMs]) if (ms > fromMs && ms < next) next = ms;
  }
  return next;
}
