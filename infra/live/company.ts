import { Looks, lookAfterMs } from "./looks.ts";
import { SharedReads } from "./shared-read.ts";
import type { Wakeups } from "./wakeups.ts";

type Source = Pick<Wakeups, "on" | "healthy">;

/** One of a company. The calls neither throw nor join or leave before they return. */
export interface Companion {
  /** The topic was announced. */
  wake(): void;
  /** Time for a look, as an announcement may have been lost. */
  look(): void;
}

/** Those of this process who look at wake-ups of one source. */
interface Place {
  readonly looks: Looks;
  readonly companies: Map<string, Company>;
}

const places = new WeakMap<Source, Place>();

/**
 * Everybody in this process who follows one topic. They are woken together, look together when no wake-up came, and so
 * can share what they read: silence costs by topics and cursors, however many follow them.
 */
export class Company {
  /** What they read; see `follow`'s `share`. */
  readonly reads = new SharedReads<unknown>();
  readonly #members = new Set<Companion>();
  readonly #source: Source;
  readonly #rereadMs: number;
  readonly #looks: Looks;
  readonly #stopListening: () => void;
  readonly #onEmpty: () => void;
  #cancelLook: () => void = () => {};

  private constructor(source: Source, topic: string, rereadMs: number, looks: Looks, onEmpty: () => void) {
    this.#source = source;
    this.#rereadMs = rereadMs;
    this.#looks = looks;
    this.#onEmpty = onEmpty;
    this.#stopListening = source.on(topic, () => {
      for (const member of this.#members) member.wake();
    });
    this.#lookLater();
  }

  /**
   * Joins who follows the topic already, or is the first to.
   * @param rereadMs time between looks; those who look at different intervals are different companies
   */
  static join(source: Source, topic: string, rereadMs: number, member: Companion): Company {
    const place = places.get(source) ?? { looks: new Looks(), companies: new Map<string, Company>() };
    places.set(source, place);
    const { companies, looks } = place;
    const key = `${rereadMs} ${topic}`;
    const company = companies.get(key) ?? new Company(source, topic, rereadMs, looks, () => void companies.delete(key));
    companies.set(key, company);
    company.#members.add(member);
    return company;
  }

  /** The last one to leave ends it: nothing is held any more. */
  leave(member: Companion): void {
    if (!this.#members.delete(member) || this.#members.size > 0) return;
    this.#onEmpty();
    this.#stopListening();
    this.#cancelLook();
  }

  #lookLater(): void {
    const ms = lookAfterMs(this.#rereadMs, this.#source.healthy, Math.random);
    this.#cancelLook = this.#looks.after(ms, () => {
      this.#lookLater();
      for (const member of this.#members) member.look();
    });
  }
}
