import type { SimulatedMarket } from "../../infra/drivers/simulated/market.ts";
import { SIMULATED_SETTINGS } from "./settings.ts";
import type { World } from "./world.ts";

/** What the rows said at the last look that read them. */
export interface RowsSaid {
  /** Orders that are not gone. */
  openOrders: ReadonlySet<string>;
  /** Orders whose command is to run. */
  wantedOrders: ReadonlySet<string>;
  /** Last record that is written down, by order. */
  appliedSeq: ReadonlyMap<string, number>;
  /** What somebody of the platform has to do now, or soon: a text that is another one whenever it was tried. */
  due: readonly string[];
  /** Names of the objects that rows refer to. */
  stored: readonly string[];
}

/** What a supplier may still hold of an order that is over, before it counts as forgotten. */
const FORGOTTEN_MS = 30 * 60_000;
/** A host hears of the end within the lease, or ends the guest by itself; a guest that takes no notice has its grace. */
const UNWANTED_MS = SIMULATED_SETTINGS.leaseMs + SIMULATED_SETTINGS.cancelGraceMs;
/** A waiting stage is looked at far more often than this, whatever becomes of queue and clock. */
const UNTRIED_MS = 6 * 60_000;
/** What only a job does is rung for again and again; a queue that loses a third of all jobs does not lose so many in a row. */
const UNDONE_MS = 20 * 60_000;
/** A removal of bytes that failed is over after minutes, and then tried again. */
const UNREMOVED_MS = 40 * 60_000;
/** A delivery whose job was lost is queued again after a minute. */
const UNSENT_MS = 10 * 60_000;

/** Compares what the rows say with what is, after every event. */
export class Outside {
  readonly #world: World;
  /** When orders that the rows say are gone were first seen at the supplier. */
  readonly #forgotten = new Since();
  readonly #unwanted = new Since();
  readonly #due = new Since();

  constructor(world: World) {
    this.#world = world;
  }

  /** What is wrong now; empty when nothing is. */
  look(said: RowsSaid): string[] {
    const { live } = this.#world.market;
    return [
      ...runsTwice(live),
      ...this.#runsUnwanted(live, said),
      ...this.#forgottenOrders(live, said),
      ...this.#unwritten(said),
      ...this.#undone(said),
      ...this.#withoutBytes(said),
      ...this.#world.receivers.wrong,
    ];
  }

  #runsUnwanted(live: SimulatedMarket["live"], { wantedOrders }: RowsSaid): string[] {
    const unwanted = live.filter(({ id, runner }) => runner?.running && !wantedOrders.has(id)).map(({ id }) => id);
    return this.#unwanted
      .lasting(unwanted, this.#world.clock.nowMs, UNWANTED_MS)
      .map((id) => `not true: a command that nobody wants any more stops within a lease and its grace: ${id}`);
  }

  /** Orders that cost money at the supplier and that nobody here thinks of any more: only for a while, and only after a lie. */
  #forgottenOrders(live: SimulatedMarket["live"], { openOrders }: RowsSaid): string[] {
    const { driver, clock } = this.#world;
    const forgotten = live.map(({ id }) => id).filter((id) => !openOrders.has(id));
    const unexplained = forgotten.filter((id) => !driver.lies.has(id));
    const late = this.#forgotten.lasting(forgotten, clock.nowMs, FORGOTTEN_MS);
    return [
      ...unexplained.map((id) => `not true: what the rows call gone is gone, unless the supplier lied: ${id}`),
      ...late.map((id) => `not true: the supplier holds nothing for long that nobody knows: ${id}`),
    ];
  }

  /** A host forgets what was acknowledged. */
  #unwritten({ appliedSeq }: RowsSaid): string[] {
    const { acknowledged } = this.#world.network;
    return [...appliedSeq]
      .filter(([id, seq]) => (acknowledged.get(id) ?? 0) > seq)
      .map(([id, seq]) => `not true: what was acknowledged is written down: of ${id} it is ${seq} records`);
  }

  #withoutBytes({ stored }: RowsSaid): string[] {
    return stored
      .filter((sha256) => !this.#world.results.holds(sha256))
      .map((sha256) => `not true: what a row refers to is stored: ${sha256}`);
  }

  #undone({ due }: RowsSaid): string[] {
    const { nowMs } = this.#world.clock;
    return this.#due
      .lasting(due, nowMs, UNTRIED_MS)
      .filter((what) => this.#due.forMs(what, nowMs) > patienceMs(what))
      .map((what) => `not true: what is due is not left lying: ${what}`);
  }
}

function patienceMs(what: string): number {
  if (what.startsWith("place ")) return UNTRIED_MS;
  if (what.startsWith("remove the bytes ")) return UNREMOVED_MS;
  return what.startsWith("send ") ? UNSENT_MS : UNDONE_MS;
}

/** Whatever the rows say: commands of two generations of a stage must not run at once. */
function runsTwice(live: SimulatedMarket["live"]): string[] {
  const runs = new Map<string, string>();
  for (const { id, runner } of live) {
    const running = runner?.running;
    if (!running) continue;
    const stage = `${running.workloadId}/${running.stageId}`;
    const other = runs.get(stage);
    if (other) return [`not true: a stage's command runs once at most: ${stage} runs as ${other} and as ${id}`];
    runs.set(stage, id);
  }
  return [];
}

/** Since when things have been as they are, in true time. */
class Since {
  readonly #sinceMs = new Map<string, number>();

  /** Takes in what is so now; returns what has been for longer than `forMs`. */
  lasting(now: readonly string[], nowMs: number, forMs: number): string[] {
    const all = new Set(now);
    for (const what of this.#sinceMs.keys()) if (!all.has(what)) this.#sinceMs.delete(what);
    for (const what of all) if (!this.#sinceMs.has(what)) this.#sinceMs.set(what, nowMs);
    return now.filter((what) => this.forMs(what, nowMs) > forMs);
  }

  forMs(what: string, nowMs: number): number {
    return nowMs - (this.#sinceMs.get(what) ?? nowMs);
  }
}
