import type { Database, Tx } from "../../infra/db/database.ts";
import { OUTBOX_TOPIC } from "../../infra/db/outbox.ts";
import { SimulatedMarket } from "../../infra/drivers/simulated/market.ts";
import { drawFor } from "../../infra/drivers/simulated/seeded-random.ts";
import { SimulatedDriver } from "../../infra/drivers/simulated/simulated-driver.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { createLogger, type Logger } from "../../infra/telemetry/logger.ts";
import { topics } from "../../subgraphs/compute/topics.ts";
import { dataTopics } from "../../subgraphs/data/topics.ts";
import { takeEvents } from "../take-events.ts";
import { Chance } from "./chance.ts";
import { type DatabaseFault, Gate } from "./gate.ts";
import { guestScripts } from "./guest-play.ts";
import { HappeningCounter } from "./happenings.ts";
import { HostNetwork } from "./host-network.ts";
import { MemoryQueue } from "./memory-queue.ts";
import { MemoryStore } from "./memory-store.ts";
import { Receivers } from "./receivers.ts";
import { SIMULATED_KINDS, SIMULATED_SETTINGS } from "./settings.ts";
import { SimClock } from "./sim-clock.ts";
import { SimulatedProcess } from "./simulated-process.ts";
import { SlowSupplier } from "./slow-supplier.ts";
import { Tenants } from "./tenants.ts";
import type { Trace } from "./trace.ts";
import { WebhookOwners } from "./webhook-owners.ts";
import { addWritten, type Written, wrote } from "./written.ts";

export interface WorldOptions {
  /** Open, with empty tables. */
  db: Database;
  seed: number;
  trace: Trace;
  /** Processes of the platform side by side. */
  processes: number;
  /** Most transactions at the same time; one unless it is said otherwise, and only then a seed's world is always the same. */
  together?: number | undefined;
  /** Ends everything when it aborts. */
  signal?: AbortSignal | undefined;
}

/** When every simulated world begins. */
const BEGINNING = new Date("2026-03-01T00:00:00Z");
/** As often as a lease still bears when three in a row are lost. */
const HEARTBEAT_MS = 20_000;
/** How far hosts' wall clocks are off, at most. */
const HOST_SKEW_MS = 120_000;
/** Work that whoever comes first takes: the others then look and find nothing, so mostly only one is woken. */
const FOR_ANYBODY: ReadonlySet<string> = new Set([OUTBOX_TOPIC, topics.capacity, dataTopics.deliveries]);
/** Share of such wake-ups that reach each of the others as well. */
const ALSO_WOKEN = 0.2;
const RUNNER_KEY = new Uint8Array(32).fill(7);

/**
 * A deployment and all that is around it: processes, database, queue, supplier, hosts, network and customers, on one
 * clock and one seed. Nothing in it happens at the same time as anything else.
 */
export class World {
  readonly clock = new SimClock(BEGINNING);
  readonly gate: Gate;
  readonly queue: MemoryQueue;
  readonly market: SimulatedMarket;
  readonly driver: SimulatedDriver;
  readonly supplier: SlowSupplier;
  readonly network: HostNetwork;
  readonly tenants: Tenants;
  readonly receivers: Receivers;
  readonly owners: WebhookOwners;
  readonly results: MemoryStore;
  readonly happenings = new HappeningCounter();
  /** Share of operations that the database fails, and how. */
  databaseFaults = 0;
  /** Share of wake-ups that are lost. */
  lostWakeups = 0;
  /** What operations wrote since the last look, which clears it. */
  readonly written: Written = new Map();
  /** Operations in all. */
  operations = 0;
  readonly #options: WorldOptions;
  readonly #chance: (part: string) => Chance;
  readonly #outside: Clock;
  readonly #gated: Database;
  readonly #logger: Logger = createLogger({ level: "silent", role: "simulation" });
  readonly #processes = new Set<SimulatedProcess>();
  readonly #routing: Chance;
  readonly #pace: Chance;
  #started = 0;
  #fault: Error | null = null;

  constructor(options: WorldOptions) {
    const { db, seed } = options;
    this.#options = options;
    this.#chance = (part) => new Chance(Math.floor(drawFor(seed, part) * 2 ** 32));
    this.#routing = this.#chance("routing");
    const clock = this.clock.view({ owner: this, stepped: false });
    this.#outside = clock;
    const faults = this.#chance("database faults");
    this.#pace = this.#chance("pace");
    this.gate = new Gate({
      chance: this.#chance("gate"),
      together: options.together,
      fault: () =>
        this.databaseFaults > 0 && faults.happens(this.databaseFaults)
          ? faults.pick<DatabaseFault>(["lost request", "lost reply"])
          : null,
      done: ({ name, outcome, wrote }) => {
        this.operations++;
        for (const text of wrote) addWritten(this.written, text);
        if (outcome.startsWith("lost ")) this.happenings.count("platform", `database ${outcome}`);
        this.note("database", name, outcome);
      },
    });
    this.#gated = this.gate.database(db);
    const note = this.note.bind(this);
    const route = () => this.#anyProcess();
    const { count } = this.happenings;
    this.results = new MemoryStore({ clock, chance: this.#chance("store"), count });
    this.network = new HostNetwork({ clock, route, note, count });
    this.market = new SimulatedMarket({
      ...{ clock, seed, kinds: SIMULATED_KINDS, connect: this.network.connect, scripts: guestScripts },
      hostClock: (orderId) => this.#hostClock(orderId),
      heartbeatIntervalMs: HEARTBEAT_MS,
    });
    this.driver = new SimulatedDriver({ market: this.market, random: this.#chance("supplier").number });
    this.supplier = new SlowSupplier({
      ...{ driver: this.driver, market: this.market, clock, chance: this.#chance("supplier's pace") },
      ...{ note, count },
    });
    this.queue = new MemoryQueue({
      ...{ clock, chance: this.#chance("queue"), count },
      run: (job) => this.#anyProcess()?.run(job) ?? null,
    });
    const asking = { clock: this.clock.view({ owner: this, stepped: true }), route, note, count };
    this.tenants = new Tenants({ ...asking, chance: this.#chance("tenants") });
    this.receivers = new Receivers({ clock, chance: this.#chance("receivers"), note, count });
    this.owners = new WebhookOwners({ ...asking, chance: this.#chance("webhooks"), receivers: this.receivers });
    db.offerTo((tx, events) => takeEvents(this.#watched(tx), events));
    const wakeups = this.#chance("wake-ups");
    db.announceTo((topic) => {
      const first = this.#processes.size > 1 && FOR_ANYBODY.has(topic) ? wakeups.pick([...this.#processes]) : null;
      for (const process of this.#processes) {
        if (wakeups.happens(this.lostWakeups)) count("platform", "wake-up lost");
        else if (first === null || process === first || wakeups.happens(ALSO_WOKEN)) process.wake(topic);
      }
    });
    for (let n = 0; n < options.processes; n++) this.startProcess();
  }

  /** The database itself, beside the gate, for those who only look. */
  get db(): Database {
    return this.#options.db;
  }

  /** For whatever is no part of the platform. */
  get outside(): Clock {
    return this.#outside;
  }

  get alive(): SimulatedProcess[] {
    return [...this.#processes];
  }

  /** Processes that are not there, though they should be. */
  get missing(): number {
    return this.#options.processes - this.#processes.size;
  }

  get passedMs(): number {
    return this.clock.nowMs - BEGINNING.getTime();
  }

  note(actor: string, action: string, outcome: string): void {
    this.#options.trace.add({ atMs: this.passedMs, actor, action, outcome });
  }

  /** Somebody goes about their business; a fault of theirs ends the world. */
  begin(business: () => Promise<void>): void {
    business().catch((error: Error) => {
      this.#fault ??= error;
    });
  }

  /** What is written for events that a command offers is not among the command's own statements. */
  #watched(tx: Tx): Tx {
    const sql: Tx["sql"] = async (text, values) => {
      const rows = await tx.sql(text, values);
      if (wrote(text, rows)) addWritten(this.written, text);
      return rows as never;
    };
    return Object.assign(Object.create(tx) as Tx, { sql });
  }

  startProcess(): void {
    const number = ++this.#started;
    const owner = {};
    const clock = this.clock.view({ owner, stepped: true });
    this.note("platform", `process ${number}`, "starts");
    const process: SimulatedProcess = new SimulatedProcess({
      ...{ db: this.#gated, clock, settings: SIMULATED_SETTINGS, driver: this.supplier, results: this.results },
      receivers: this.receivers,
      ...{ publish: this.queue.publish, logger: this.#logger, runnerKey: RUNNER_KEY },
      chance: this.#chance(`process ${number}`),
      note: (actor, action, outcome) => this.note(actor, action, outcome),
      count: this.happenings.count,
      onDeath: () => {
        this.happenings.count("platform", "process died");
        this.note("platform", `process ${number}`, `dies: ${process.death.steps.at(-1)}`);
        this.clock.forget(owner);
        this.#processes.delete(process);
        this.network.processDied(process);
      },
    });
    this.#processes.add(process);
  }

  /**
   * Lets things happen, one after another, until `untilMs` after the beginning. `look` is called after each of them,
   * with nothing under way.
   */
  async pass(untilMs: number, look: () => Promise<void>): Promise<void> {
    for (;;) {
      await turn();
      this.#options.signal?.throwIfAborted();
      if (this.#fault) throw this.#fault;
      if (!this.gate.idle) {
        await this.gate.passOne();
      } else if (this.gate.underWay > 0 && this.#waits(untilMs)) {
        await this.gate.oneOver();
      } else {
        if (this.clock.nextDueMs() - BEGINNING.getTime() > untilMs) return;
        this.clock.wakeNext();
      }
      await look();
    }
  }

  /** Whether time stands still for what is under way; else it goes on meanwhile, as it does for a slow database. */
  #waits(untilMs: number): boolean {
    const crowded = 2 * this.gate.underWay >= (this.#options.together ?? 1);
    return crowded || this.#pace.happens(0.25) || this.clock.nextDueMs() - BEGINNING.getTime() > untilMs;
  }

  #anyProcess(): SimulatedProcess | null {
    return this.#processes.size === 0 ? null : this.#routing.pick([...this.#processes]);
  }

  #hostClock(orderId: string): Clock {
    const skewMs = Math.round((drawFor(this.#options.seed, orderId) * 2 - 1) * HOST_SKEW_MS);
    return this.clock.view({ owner: this, stepped: false, skewMs });
  }
}

/** Whatever follows from what has happened, without anybody's waiting, happens. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
