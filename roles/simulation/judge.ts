import { type Finding, NOT_OVERSOLD, notTrue } from "./invariants.ts";
import {
  DUE,
  EVERY_SENTENCE,
  lookAt,
  OPEN_ORDERS,
  OPEN_WORKLOADS,
  OUTBOX,
  RESERVED,
  STORED,
  sentencesOver,
} from "./looking.ts";
import { Outside, type RowsSaid } from "./outside.ts";
import type { SimulationDatabase } from "./simulation-database.ts";
import type { World } from "./world.ts";
import { ROWS_WENT } from "./written.ts";

/** What a judge has looked at. */
export interface Looks {
  /** At every sentence that an operation may have broken, over the workloads that it may have been about. */
  near: number;
  /** At every sentence, over everything. */
  full: number;
  /** Sentences in all. */
  sentences: number;
}

interface Reserved extends Record<(typeof RESOURCES)[number] | `${(typeof RESOURCES)[number]}_used`, number> {
  id: string;
}
const OUTBOX_TABLE = "infra.outbox";
const RESOURCES = ["slots", "cpu_millis", "memory_mb", "gpus"] as const;

interface OpenOrder {
  id: string;
  wanted: boolean;
  applied_seq: number | null;
}

/**
 * Looks at a simulated world after everything that happens. After each of them at what runs, at what the supplier
 * holds and at what is overdue; after each operation at every sentence about what it wrote, over the workloads that are
 * not settled or were not at the look before; after every so many looks, and whenever it is asked, at everything.
 */
export class Judge {
  readonly looks: Looks = { near: 0, full: 0, sentences: 0 };
  readonly #world: World;
  readonly #database: SimulationDatabase;
  readonly #outside: Outside;
  readonly #fullLookEvery: number;
  #reserved = new Map<string, Reserved>();
  #outbox: readonly string[] = [];
  #openWorkloads: readonly string[] = [];
  #said: RowsSaid = { openOrders: new Set(), wantedOrders: new Set(), appliedSeq: new Map(), due: [], stored: [] };
  #nearSinceFull = 0;
  #steppedMs = 0;

  constructor(world: World, database: SimulationDatabase, fullLookEvery: number) {
    this.#world = world;
    this.#database = database;
    this.#outside = new Outside(world);
    this.#fullLookEvery = fullLookEvery;
  }

  /** What is wrong now; empty when nothing is. */
  async look(): Promise<string[]> {
    const { written } = this.#world;
    const stepped = this.#clockWasSet();
    if (written.size === 0 && !stepped) return this.#outside.look(this.#said);
    const sentences = sentencesOver(written);
    if (stepped && !sentences.includes(DUE)) sentences.push(DUE);
    if (this.#canWait(sentences)) return this.#outside.look(this.#said);
    written.clear();
    if (sentences.length === 0) return this.#outside.look(this.#said);
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

  /** What is due is told by the wall clock, also when nobody has written since. */
  #clockWasSet(): boolean {
    const { steppedMs } = this.#world.clock;
    const wasSet = steppedMs !== this.#steppedMs;
    this.#steppedMs = steppedMs;
    return wasSet;
  }

  /**
   * Jobs that have left the outbox can be told from those that were in it at any later look, as long as none comes in
   * between; so a relay's rounds, of which most find nothing, need no look of their own.
   */
  #canWait(sentences: readonly string[]): boolean {
    const { written } = this.#world;
    const onlyLeft = sentences.every((one) => one === OUTBOX) && written.get(OUTBOX_TABLE) === ROWS_WENT;
    return onlyLeft && this.#fullLookEvery > 1;
  }

  async #askAbout(sentences: readonly string[], of: "all" | "recent"): Promise<string[]> {
    this.looks.sentences += sentences.length;
    const latest = this.#world.clock.highestWall();
    const rows = await this.#database.look<Finding>(lookAt(sentences, of), [
      this.#openWorkloads,
      latest,
      this.#world.clock.wall(),
    ]);
    const wrong = rows.flatMap((found) => this.#compare(found) ?? notTrue(found));
    return [...wrong, ...this.#outside.look(this.#said)];
  }

  /** Takes in what is no finding by itself; null for a finding. */
  #compare({ sentence, row }: Finding): string[] | null {
    switch (sentence) {
      case RESERVED:
        return this.#oversold(row as Reserved[]);
      case OPEN_ORDERS:
        this.#said = { ...this.#said, ...saidOf(row as OpenOrder[]) };
        return [];
      case DUE:
        this.#said = { ...this.#said, due: row as string[] };
        return [];
      case STORED:
        this.#said = { ...this.#said, stored: row as string[] };
        return [];
      case OUTBOX:
        return this.#lostJobs(row as string[]);
      case OPEN_WORKLOADS:
        this.#openWorkloads = row as string[];
        return [];
      default:
        return null;
    }
  }

  /** A job leaves the outbox for the queue, which may lose it then. */
  #lostJobs(now: readonly string[]): string[] {
    const still = new Set(now);
    const { published } = this.#world.queue;
    const lost = this.#outbox.filter((id) => !still.has(id) && !published.has(id));
    this.#outbox = now;
    return lost.map((id) => `not true: a job leaves the outbox for the queue: ${id}`);
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
}

function saidOf(orders: readonly OpenOrder[]): Omit<RowsSaid, "due" | "stored"> {
  return {
    openOrders: new Set(orders.map(({ id }) => id)),
    wantedOrders: new Set(orders.filter(({ wanted }) => wanted).map(({ id }) => id)),
    appliedSeq: new Map(orders.flatMap(({ id, applied_seq }) => (applied_seq === null ? [] : [[id, applied_seq]]))),
  };
}
