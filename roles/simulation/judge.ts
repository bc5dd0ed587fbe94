import { type Finding, NOT_OVERSOLD, notTrue } from "./invariants.ts";
import { EVERY_SENTENCE, lookAt, OPEN_ORDERS, OPEN_WORKLOADS, RESERVED, sentencesOver } from "./looking.ts";
import type { SimulationDatabase } from "./simulation-database.ts";
import type { World } from "./world.ts";

/** What a judge has looked at. */
export interface Looks {
  /** At every sentence that an operation may have broken, over the workloads that it may have been about. */
  near: number;
  /** At every sentence, over everything. */
  full: number;
  /** Sentences in all. */
  sentences: number;
}

/** What a supplier may still hold of an order that is over, before it counts as forgotten. */
const FORGOTTEN_MS = 30 * 60_000;

interface Reserved extends Record<(typeof RESOURCES)[number] | `${(typeof RESOURCES)[number]}_used`, number> {
  id: string;
}
const RESOURCES = ["slots", "cpu_millis", "memory_mb", "gpus"] as const;

/**
 * Looks at a simulated world after everything that happens. After each of them at whether a command runs twice, and at
 * what the supplier holds; after each operation at every sentence about what it wrote, over the workloads that are not
 * settled or were not at the look before; after every so many looks, and whenever it is asked, at everything.
 */
export class Judge {
  readonly looks: Looks = { near: 0, full: 0, sentences: 0 };
  readonly #world: World;
  readonly #database: SimulationDatabase;
  readonly #fullLookEvery: number;
  #reserved = new Map<string, Reserved>();
  #openWorkloads: readonly string[] = [];
  #openOrders: ReadonlySet<string> = new Set();
  /** When an order that our rows say is gone was first seen at the supplier, in true time. */
  readonly #forgottenSinceMs = new Map<string, number>();
  #nearSinceFull = 0;

  constructor(world: World, database: SimulationDatabase, fullLookEvery: number) {
    this.#world = world;
    this.#database = database;
    this.#fullLookEvery = fullLookEvery;
  }

  /** What is wrong now; empty when nothing is. */
  async look(): Promise<string[]> {
    const { written } = this.#world;
    if (written.size === 0) return this.#outside();
    const sentences = sentencesOver(written);
    written.clear();
    if (sentences.length === 0) return this.#outside();
    if (this.#nearSinceFull + 1 >= this.#fullLookEvery) return this.everything();
    this.#nearSinceFull++;
    this.looks.near++;
    return this.#askAbout(sentences, "recent");
  }

  async everything(): Promise<string[]> {
    this.#nearSinceFull = 0;
    this.looks.full++;
    return this.#askAbout(EVERY_SENTENCE, "all");
  }

  async #askAbout(sentences: readonly string[], of: "all" | "recent"): Promise<string[]> {
    this.looks.sentences += sentences.length;
    const latest = this.#world.clock.highestWall();
    const rows = await this.#database.look<Finding>(lookAt(sentences, of), [this.#openWorkloads, latest]);
    const wrong = rows.flatMap((found) => this.#compare(found) ?? notTrue(found));
    return [...wrong, ...this.#outside()];
  }

  /** Takes in what is no finding by itself; null for a finding. */
  #compare({ sentence, row }: Finding): string[] | null {
    switch (sentence) {
      case RESERVED:
        return this.#oversold(row as Reserved[]);
      case OPEN_ORDERS:
        this.#openOrders = new Set(row as string[]);
        return [];
      case OPEN_WORKLOADS:
        this.#openWorkloads = row as string[];
        return [];
      default:
        return null;
    }
  }

  /** The supplier takes machines back as it likes; what may not be is that more is reserved than there is, and more than before. */
  #oversold(all: readonly Reserved[]): string[] {
    const oversold = all.filter((now) => {
      const before = this.#reserved.get(now.id);
      return RESOURCES.some((of) => now[`${of}_used`] > (before?.[`${of}_used`] ?? 0) && now[`${of}_used`] > now[of]);
    });
    this.#reserved = new Map(all.map((now) => [now.id, now]));
    return oversold.map((row) => notTrue({ sentence: NOT_OVERSOLD, row }));
  }

  /** What no row tells. */
  #outside(): string[] {
    return [...this.#runsTwice(), ...this.#forgotten()];
  }

  /** Whatever the rows say: commands of two generations of a stage must not run at once. */
  #runsTwice(): string[] {
    const runs = new Map<string, string>();
    for (const { id, runner } of this.#world.market.live) {
      const running = runner?.running;
      if (!running) continue;
      const stage = `${running.workloadId}/${running.stageId}`;
      const other = runs.get(stage);
      if (other) return [`not true: a stage's command runs once at most: ${stage} runs as ${other} and as ${id}`];
      runs.set(stage, id);
    }
    return [];
  }

  /** Orders that cost money at the supplier and that nobody here thinks of any more: only for a while, and only after a lie. */
  #forgotten(): string[] {
    const { market, driver, clock } = this.#world;
    const since = this.#forgottenSinceMs;
    const forgotten = market.live.map(({ id }) => id).filter((id) => !this.#openOrders.has(id));
    for (const id of since.keys()) if (!forgotten.includes(id)) since.delete(id);
    for (const id of forgotten) if (!since.has(id)) since.set(id, clock.nowMs);
    const unexplained = forgotten.filter((id) => !driver.lies.has(id));
    const late = forgotten.filter((id) => clock.nowMs - since.get(id)! > FORGOTTEN_MS);
    return [
      ...unexplained.map((id) => `not true: what the rows call gone is gone, unless the supplier lied: ${id}`),
      ...late.map((id) => `not true: the supplier holds nothing for long that nobody knows: ${id}`),
    ];
  }
}
