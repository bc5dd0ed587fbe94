import type { CommandBounds, Database, Tx } from "../../infra/db/database.ts";
import type { Chance } from "./chance.ts";
import { wrote } from "./written.ts";

/** What the database does to an operation. */
export type DatabaseFault =
  /** It never gets there. */
  | "lost request"
  /** It takes effect and nobody is told. */
  | "lost reply";

interface Waiting {
  run(): Promise<void>;
}

export interface GateOptions {
  chance: Chance;
  /** Asked before each operation. */
  fault(): DatabaseFault | null;
  /** Told after each operation, with the texts of its statements that may have changed anything. */
  done(operation: { name: string; outcome: string; wrote: readonly string[] }): void;
  /** Most operations that are under way at once; one unless it is said otherwise. */
  together?: number | undefined;
}

/**
 * The only way to the database in a simulated world: one operation (a transaction, or a statement outside one) at a
 * time, the next one drawn from those that wait. So every order of transactions can come up, and the same one for the
 * same seed. Where several may be `together`, their statements interleave as the database has it, and no run is like
 * another.
 */
export class Gate {
  readonly #options: GateOptions;
  #waiting: Waiting[] = [];
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: GateOptions) {
    this.#options = options;
  }

  get idle(): boolean {
    return this.#waiting.length === 0;
  }

  /** Operations that were let through and are not over. */
  get underWay(): number {
    return this.#underWay.size;
  }

  /** Lets one of those that wait through; resolves when another one may follow. */
  async passOne(): Promise<void> {
    const { chance, together = 1 } = this.#options;
    const [next] = this.#waiting.splice(chance.between(0, this.#waiting.length - 1), 1);
    if (together === 1) return next?.run();
    const over = next!.run().then(() => void this.#underWay.delete(over));
    this.#underWay.add(over);
    if (this.#underWay.size >= together) await this.oneOver();
  }

  /** Resolves when one of the operations under way is over. */
  async oneOver(): Promise<void> {
    await Promise.race(this.#underWay);
  }

  /** The database behind the gate. */
  database(db: Database): Database {
    const replaced: Record<string, unknown> = {
      command: (work: (tx: Tx) => Promise<unknown>, bounds?: CommandBounds) => this.#command(db, work, bounds),
      sql: (text: string, values?: readonly unknown[]) =>
        this.#pass<unknown[]>({
          name: short(text),
          run: () => db.sql(text, values),
          wrote: (rows) => (wrote(text, rows) ? [text] : []),
          told: (rows) => String(rows.length),
        }),
      rows: (...[type, tail, values]: Parameters<Database["rows"]>) =>
        this.#pass<unknown[]>({
          name: `${type.name} ${short(tail)}`,
          run: () => db.rows(type, tail, values),
          wrote: () => [],
          told: (rows) => String(rows.length),
        }),
      row: (...[type, tail, values]: Parameters<Database["row"]>) =>
        this.#pass<unknown>({
          name: `${type.name} ${short(tail)}`,
          run: () => db.row(type, tail, values),
          wrote: () => [],
          told: (row) => (row ? "1" : "0"),
        }),
    };
    return new Proxy(db, {
      get: (target, key) => {
        if (typeof key === "string" && key in replaced) return replaced[key];
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  #command<T>(db: Database, work: (tx: Tx) => Promise<T>, bounds?: CommandBounds): Promise<T> {
    let statements: string[] = [];
    let written: string[] = [];
    // What a transaction offers besides its statements is passed on as it is.
    const watched = (tx: Tx): Tx => {
      const sql = async (text: string, values?: readonly unknown[]) => {
        statements.push(short(text));
        const rows = await tx.sql(text, values);
        if (wrote(text, rows)) written.push(text);
        return rows;
      };
      return Object.assign(Object.create(tx) as Tx, { sql, sqlAndCommit: sql });
    };
    return this.#pass({
      name: "command",
      run: () =>
        db.command((tx) => {
          statements = [];
          written = [];
          return work(watched(tx));
        }, bounds),
      wrote: () => written,
      told: () => `${statements.length} statements: ${statements.at(-1) ?? ""}`,
    });
  }

  #pass<T>(operation: Operation<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ run: () => this.#run(operation).then(resolve, reject) });
    });
  }

  async #run<T>({ name, run, wrote, told }: Operation<T>): Promise<T> {
    const { fault, done } = this.#options;
    const fate = fault();
    if (fate === "lost request") {
      done({ name, outcome: fate, wrote: [] });
      throw new LostConnection();
    }
    let answer: T;
    try {
      answer = await run();
    } catch (error) {
      done({ name, outcome: `failed: ${(error as Error).name}`, wrote: [] });
      throw error;
    }
    done({ name, outcome: fate ?? told(answer), wrote: wrote(answer) });
    if (fate === "lost reply") throw new LostConnection();
    return answer;
  }
}

interface Operation<T> {
  name: string;
  run(): Promise<T>;
  /** Texts of its statements that may have changed anything. */
  wrote(answer: T): readonly string[];
  /** Its answer for the trace. */
  told(answer: T): string;
}

/** What the driver says when its connection broke under a statement. */
class LostConnection extends Error {
  override readonly name = "LostConnection";
  readonly code = "08006";

  constructor() {
    super("Connection terminated unexpectedly");
  }
}

const shortened = new Map<string, string>();

/** Statements have few texts, and are passed thousands of times. */
function short(text: string): string {
  const before = shortened.get(text);
  if (before !== undefined) return before;
  const now = text.trim().replace(/\s+/g, " ").slice(0, 70);
  shortened.set(text, now);
  return now;
}
