import type { CommandBounds, Database, Tx } from "../../infra/db/database.ts";

/** What a step of a process that is dead throws. No code of the platform may tell it from other faults. */
export class SimulatedDeath extends Error {
  override readonly name = "SimulatedDeath";
}

/** One life of a process: it ends at a numbered step outside the process, and nothing that it does after that has effect. */
export interface Death {
  /** Whether the step was reached. */
  readonly happened: boolean;
  /** Steps so far, such as `driver.launch, answered`; the last one is where it died. */
  readonly steps: readonly string[];
  /** Lets it die so many steps from now instead: 1 is the next one. */
  comesIn(steps: number): void;
  /** The database as this life sees it: it may die before and after each commit, and after each statement outside one. */
  database(db: Database): Database;
  /** An object of (mostly asynchronous) functions: it may die before each call, and after it but before the answer. */
  port<T extends object>(name: string, port: T): T;
  /** Resolves when calls that were under way at the death have ended, as a server ends what it was sent. */
  quiet(): Promise<void>;
}

/** A life that ends at step `n`, counted from 1; with `Infinity` it does not end by itself. */
export function deathAt(n: number, onDeath: () => void = () => {}): Death {
  const steps: string[] = [];
  let last = n;
  const underWay = new Set<Promise<unknown>>();
  let happened = false;

  const live = () => {
    if (happened) throw new SimulatedDeath("dead already");
  };
  const step = (name: string) => {
    live();
    steps.push(name);
    if (steps.length < last) return;
    happened = true;
    onDeath();
    throw new SimulatedDeath(`died at step ${steps.length}: ${name}`);
  };
  const tracked = <T>(work: Promise<T>): Promise<T> => {
    underWay.add(work);
    const forget = () => void underWay.delete(work);
    work.then(forget, forget);
    return work;
  };

  const command = async <T>(db: Database, work: (tx: Tx) => Promise<T>, bounds?: CommandBounds): Promise<T> => {
    live();
    const answer = await db.command(async (tx) => {
      const result = await work(committedLater(tx));
      step("command, before its commit");
      return result;
    }, bounds);
    step("command, committed");
    return answer;
  };
  const statement = async (db: Database, text: string, values?: readonly unknown[]) => {
    live();
    const rows = await db.sql(text, values);
    step(`statement, done: ${text.trim().slice(0, 40)}`);
    return rows;
  };

  return {
    get happened() {
      return happened;
    },
    steps,
    comesIn: (further) => {
      last = steps.length + further;
    },
    database: (db) =>
      facade(db, {
        command: (work: (tx: Tx) => Promise<unknown>, bounds?: CommandBounds) => tracked(command(db, work, bounds)),
        sql: (text: string, values?: readonly unknown[]) => tracked(statement(db, text, values)),
      }),
    port: (name, port) =>
      facade(port, {}, (key, method) => (...args) => {
        step(`${name}.${key}, called`);
        const answer = method(...args);
        if (!(answer instanceof Promise)) return answer;
        return tracked(answer).then((value) => {
          step(`${name}.${key}, answered`);
          return value;
        });
      }),
    quiet: async () => {
      while (underWay.size > 0) await Promise.allSettled([...underWay]);
    },
  };
}

/** Commits when the command has ended, and not with its last statement: between the two it may die. */
function committedLater(tx: Tx): Tx {
  return Object.assign(Object.create(tx) as Tx, { sqlAndCommit: tx.sql });
}

type Method = (...args: unknown[]) => unknown;

/** The object with some methods replaced and the others wrapped; private members keep working. */
function facade<T extends object>(
  target: T,
  replaced: Record<string, unknown>,
  wrap: (key: string, method: Method) => Method = (_, method) => method,
): T {
  return new Proxy(target, {
    get(_, key) {
      if (typeof key === "string" && key in replaced) return replaced[key];
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function" || typeof key !== "string") return value;
      return wrap(key, (...args) => (value as Method).apply(target, args));
    },
  });
}
