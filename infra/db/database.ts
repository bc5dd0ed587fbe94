import "reflect-metadata";
import { MikroORM, type SqlEntityManager } from "@mikro-orm/postgresql";
import type pg from "pg";
import { LIMITS } from "../kernel/limits.ts";
import { instance, selectList, tableOf } from "./columns.ts";
import type { OfferedEvent } from "./offered-event.ts";
import { PreparingClient } from "./preparing-client.ts";
import { Statements } from "./statements.ts";
import { TeamTurns } from "./team-turns.ts";
import { inTransaction, type Plain, type Transaction } from "./transaction.ts";

/** An entity class. */
export type EntityClass<T extends object = object> = abstract new () => T;

/** Whoever can run a statement: the database itself (one autocommit statement) or a command's transaction. */
export interface Queryer {
  /** Bound SQL. timestamptz arrives as Date, int8 as bigint, jsonb parsed. */
  sql<R = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<R[]>;
  /** Instances of an entity: `rows(Workload, "where t.tenant_id = $1 order by t.id", [tenant])`. */
  rows<T extends object>(type: EntityClass<T>, tail: string, values?: readonly unknown[]): Promise<T[]>;
  /** The first of `rows`, or null. */
  row<T extends object>(type: EntityClass<T>, tail: string, values?: readonly unknown[]): Promise<T | null>;
}

/** One command's transaction. Never use another connection inside it. */
export interface Tx extends Queryer {
  /** The unit of work, for rare and wide changes; it sees what `sql` wrote. */
  readonly em: SqlEntityManager;
  /**
   * The last statement of a command, which leaves in one write with the COMMIT: what it locks is held for no turn of this
   * process. It has to fail where the command must not be committed, for what the command finds out afterwards undoes
   * nothing.
   */
  sqlAndCommit<R = Record<string, unknown>>(text: string, values?: readonly Plain[]): Promise<R[]>;
  /** A topic that is announced after the commit, and only then. */
  wake(topic: string): void;
  /** Hands events to whom `offerTo` names, who may write in this transaction; its failure is the command's. */
  offer(...events: readonly OfferedEvent[]): Promise<void>;
}

export interface DatabaseOptions {
  url: string;
  entities: readonly EntityClass[];
  /** Most connections of this process. */
  poolSize?: number;
  /** How long a statement or command waits for one of them before it fails as if there was no database. */
  connectionWaitMs?: number;
}

/** What a command may take of the process's connections, and for how long. */
export interface CommandBounds {
  /** Whose rows it may have to wait for: the teams share the connections. Null where it is about nobody's or many's. */
  teamId?: string | null;
  /** Longest wait for each lock; `LIMITS.lockWaitMs` unless given. */
  lockWaitMs?: number;
  /** Whoever runs it comes again by itself: while something of its team is held, it fails at once. */
  comesAgain?: boolean;
}

type Announce = (topic: string) => void;
type Offer = (tx: Tx, events: readonly OfferedEvent[]) => Promise<void>;

/** What all who use the database of a process have in common. */
interface Shared {
  readonly orm: MikroORM;
  readonly pool: pg.Pool;
  readonly reader: Queryer;
  readonly turns: TeamTurns;
  announce: Announce;
  offer: Offer;
}

/** The one PostgreSQL of the deployment. */
export class Database implements Queryer {
  /** The database that this one was made of, by `ofTeam`; null for itself. */
  readonly whole: Database | null;
  readonly #shared: Shared;
  /** Of commands that say nothing else. */
  readonly #bounds: CommandBounds;

  private constructor(shared: Shared, whole: Database | null = null, bounds: CommandBounds = {}) {
    this.#shared = shared;
    this.whole = whole;
    this.#bounds = bounds;
  }

  get orm(): MikroORM {
    return this.#shared.orm;
  }

  static async open(options: DatabaseOptions): Promise<Database> {
    const { poolSize = 20 } = options;
    const orm = await MikroORM.init({
      clientUrl: options.url,
      entities: [...options.entities] as never,
      pool: { min: 0, max: poolSize },
      driverOptions: {
        Client: PreparingClient,
        keepAlive: true,
        connectionTimeoutMillis: options.connectionWaitMs ?? LIMITS.databaseConnectionWaitMs,
        application_name: "nodus",
        pipeline: true,
      },
      discovery: { warnWhenNoEntities: false },
      debug: false,
    });
    const pool: pg.Pool = await orm.em.getConnection().getNativeClient();
    const statements = new Statements(pool);
    return new Database({
      ...{ orm, pool, turns: new TeamTurns(poolSize), announce: () => {}, offer: async () => {} },
      reader: queryer((text, values) => statements.run(text, values)),
    });
  }

  /** The same for requests of a team: its commands use the team's share of the connections, and wait as long as a caller would. */
  ofTeam(teamId: string): Database {
    return new Database(this.#shared, this.whole ?? this, { teamId, lockWaitMs: LIMITS.requestLockWaitMs });
  }

  /** Whether a command of the team that this is for waited for a lock in vain a moment ago. */
  get isHeld(): boolean {
    const { teamId } = this.#bounds;
    return typeof teamId === "string" && this.#shared.turns.isHeld(teamId);
  }

  /** Where the wake-ups of commands go; set once by the composition root. */
  announceTo(announce: Announce): void {
    this.#shared.announce = announce;
  }

  /** Who writes down what commands offer; set once by the composition root, and the same in every process. */
  offerTo(offer: Offer): void {
    this.#shared.offer = offer;
  }

  sql<R>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return this.#shared.reader.sql<R>(text, values);
  }

  rows<T extends object>(type: EntityClass<T>, tail: string, values: readonly unknown[] = []): Promise<T[]> {
    return this.#shared.reader.rows(type, tail, values);
  }

  row<T extends object>(type: EntityClass<T>, tail: string, values: readonly unknown[] = []): Promise<T | null> {
    return this.#shared.reader.row(type, tail, values);
  }

  /**
   * One command, one transaction at READ COMMITTED. A deadlock or serialization failure runs the whole command again,
   * nothing of the first try remains; wake-ups leave after the commit. What waits too long for what others hold fails as
   * `isWaitForOthersOver` tells, with nothing written.
   */
  async command<T>(work: (tx: Tx) => Promise<T>, given: CommandBounds = {}): Promise<T> {
    const { teamId = null, lockWaitMs = null, comesAgain = false } = { ...this.#bounds, ...given };
    const attempts = () => this.#attempts(work, lockWaitMs);
    return teamId === null ? attempts() : this.#shared.turns.pass(teamId, { comesAgain }, attempts);
  }

  async #attempts<T>(work: (tx: Tx) => Promise<T>, lockWaitMs: number | null): Promise<T> {
    const { pool, orm, announce, offer } = this.#shared;
    for (let attempt = 1; ; attempt++) {
      const topics = new Set<string>();
      let answer: T;
      try {
        answer = await inTransaction(pool, orm, lockWaitMs, (transaction) => work(txOf(transaction, topics, offer)));
      } catch (error) {
        if (attempt === COMMAND_ATTEMPTS || !RETRIED_STATES.has(sqlState(error) ?? "")) throw error;
        continue;
      }
      // Committed: whatever happens from here on must not run it again. Statements that were sent together may have named
      // their topics in any order, and the simulation lives each world the same way twice.
      for (const topic of [...topics].sort()) announce(topic);
      return answer;
    }
  }

  close(): Promise<void> {
    return this.#shared.orm.close(true);
  }
}

const COMMAND_ATTEMPTS = 5;
/** serialization_failure and deadlock_detected. */
const RETRIED_STATES = new Set(["40001", "40P01"]);

/** The SQLSTATE of a driver error; null for any other. */
export function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : null;
}

function queryer(run: (text: string, values: readonly unknown[]) => Promise<unknown[]>): Queryer {
  const rows = async <T extends object>(type: EntityClass<T>, tail: string, values: readonly unknown[] = []) => {
    const found = await run(`select ${selectList(type)} from ${tableOf(type)} t ${tail}`, values);
    return found.map((row) => instance(type, row as Record<string, unknown>));
  };
  return {
    sql: <R>(text: string, values: readonly unknown[] = []) => run(text, values) as Promise<R[]>,
    rows,
    row: async (type, tail, values = []) => (await rows(type, tail, values))[0] ?? null,
  };
}

function txOf(transaction: Transaction, topics: Set<string>, offer: Offer): Tx {
  const tx: Tx = {
    get em() {
      return transaction.em();
    },
    sqlAndCommit: <R>(text: string, values: readonly Plain[] = []) =>
      transaction.runAndCommit(text, values) as Promise<R[]>,
    wake: (topic) => void topics.add(topic),
    offer: (...events) => offer(tx, events),
    ...queryer(transaction.run),
  };
  return tx;
}
