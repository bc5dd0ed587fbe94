import type { Database } from "../../infra/db/database.ts";
import { brokenInvariants, NOT_OVERSOLD } from "./invariants.ts";
import type { World } from "./world.ts";

/** What a judge has looked at. */
export interface Looks {
  /** At what costs little: after everything that wrote what is reserved or held. */
  short: number;
  /** At every sentence that must be true. */
  full: number;
}

/** What a supplier may still hold of an order that is over, before it counts as forgotten. */
const FORGOTTEN_MS = 30 * 60_000;

interface Reserved {
  id: string;
  slots: number;
  slots_used: number;
  cpu_millis: number;
  cpu_millis_used: number;
  gpus: number;
  gpus_used: number;
}

/**
 * Looks at a simulated world after everything that happens. After each of them, at whether a
 * command runs twice; after each operation that wrote what is reserved or held, at whether anything was oversold or money
 * held twice; after every so many operations that wrote, and whenever it is asked, at everything.
 */
export class Judge {
  readonly looks: Looks = { short: 0, full: 0 };
  readonly #world: World;
  readonly #db: Database;
  readonly #everyWrites: number;
  readonly #reserved = new Map<string, Reserved>();
  /** When an order that our rows say is gone was first seen at the supplier, in true time. */
  readonly #forgottenSinceMs = new Map<string, number>();
  #unlooked = 0;

  constructor(world: World, db: Database, everyWrites: number) {
    this.#world = world;
    this.#db = db;
    this.#everyWrites = everyWrites;
  }

  /** What is wrong now; empty when nothing is. */
  async look(): Promise<string[]> {
    const twice = this.#runsTwice();
    if (twice.length > 0 || this.#world.written === 0) return twice;
    this.#unlooked += this.#world.written;
    this.#world.written = 0;
    const wrong = this.#world.reservedWritten ? await this.#short() : [];
    this.#world.reservedWritten = false;
    if (wrong.length > 0 || this.#unlooked < this.#everyWrites) return wrong;
    return this.everything();
  }

  async everything(): Promise<string[]> {
    this.#unlooked = 0;
    this.looks.full++;
    // The supplier takes machines back, and the wall clock is set back, as mischief has it.
    const broken = await brokenInvariants(this.#db, [NOT_OVERSOLD]);
    return [...broken, ...(await this.#unexplained()), ...(await this.#forgotten())];
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

  async #short(): Promise<string[]> {
    this.looks.short++;
    const [reserved, money] = await Promise.all([
      this.#db.sql<Reserved>(
        "select id, slots, slots_used, cpu_millis, cpu_millis_used, gpus, gpus_used from compute.capacity",
      ),
      this.#db.sql<{ id: string }>(MONEY),
    ]);
    const oversold = reserved.filter((now) => isOversold(now, this.#reserved.get(now.id)));
    for (const now of reserved) this.#reserved.set(now.id, now);
    return [
      ...oversold.map((row) => `not true: ${NOT_OVERSOLD}: ${JSON.stringify(row)}`),
      ...money.map(({ id }) => `not true: an account holds no more than it has, and what its workloads hold: ${id}`),
    ];
  }

  async #unexplained(): Promise<string[]> {
    const rows = await this.#db.sql<{ id: string }>(UNEXPLAINED, [this.#world.clock.highestWall()]);
    return rows.map((row) => `not true: what waits for capacity says why: ${JSON.stringify(row)}`);
  }

  /** Orders that cost money at the supplier and that nobody here thinks of any more: only for a while, and only after a lie. */
  async #forgotten(): Promise<string[]> {
    const { market, driver, clock } = this.#world;
    const live = market.live.map(({ id }) => id);
    const open = await this.#db.sql<{ id: string }>("select id from compute.attempt where state <> 'gone'");
    const known = new Set(open.map(({ id }) => id));
    const forgotten = live.filter((id) => !known.has(id));
    for (const id of [...this.#forgottenSinceMs.keys()]) if (!forgotten.includes(id)) this.#forgottenSinceMs.delete(id);
    for (const id of forgotten) if (!this.#forgottenSinceMs.has(id)) this.#forgottenSinceMs.set(id, clock.nowMs);
    const since = (id: string) => this.#forgottenSinceMs.get(id)!;
    return [
      ...forgotten
        .filter((id) => !driver.lies.has(id))
        .map((id) => `not true: what the rows call gone is gone, unless the supplier lied: ${id}`),
      ...forgotten
        .filter((id) => clock.nowMs - since(id) > FORGOTTEN_MS)
        .map((id) => `not true: the supplier holds nothing for long that nobody knows: ${id}`),
    ];
  }
}

/** More was reserved since the last look than there is. */
function isOversold(now: Reserved, before: Reserved | undefined): boolean {
  const grew = (used: number, usedBefore: number | undefined, total: number) =>
    used > (usedBefore ?? 0) && used > total;
  return (
    grew(now.slots_used, before?.slots_used, now.slots) ||
    grew(now.cpu_millis_used, before?.cpu_millis_used, now.cpu_millis) ||
    grew(now.gpus_used, before?.gpus_used, now.gpus)
  );
}

const MONEY = `select a.id from compute.account a
  where a.held_micros < 0 or a.held_micros > a.balance_micros
    or a.held_micros <> (select coalesce(sum(w.held_micros), 0) from compute.workload w where w.tenant_id = a.id)`;

/**
 * `$1` the latest time that anybody has read. A stage whose next try lies beyond it was looked at, and then its workload
 * says what it waits for; one that was due before the wall clock was set back is only late.
 */
const UNEXPLAINED = `select w.id, w.status, s.next_try_at from compute.workload w join compute.stage s on s.workload_id = w.id
  where w.terminal_at is null and s.status = 'placing' and s.next_try_at > $1 and (w.waiting_reason is null or w.waiting_since is null)`;
