import type pg from "pg";

/** Statements that one connection is given in one turn: enough to save most round trips, few enough that a slow one delays few. */
const PER_CONNECTION = 8;

/** Texts of which it is remembered whether they are reads. The platform has some hundreds; any beyond are looked at each time. */
const MAX_TEXTS = 1_000;

interface Waiting {
  text: string;
  values: readonly unknown[];
  resolve(rows: unknown[]): void;
  reject(error: unknown): void;
}

/**
 * Statements outside of transactions, each its own autocommit. Those that are asked for in the same turn of the event
 * loop leave in one write and come back in one read, where a connection for each would cost both processes a wake-up
 * per statement; that is most of what a short statement costs. They neither share a snapshot nor their failures. What may
 * have to wait for somebody's lock leaves by itself: answers come in order, and a read would wait with it.
 */
export class Statements {
  readonly #pool: pg.Pool;
  #waiting: Waiting[] = [];

  /** The pool's clients must be in pipeline mode. */
  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  run(text: string, values: readonly unknown[]): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.push({ text, values, resolve, reject }) === 1) setImmediate(() => this.#sendAll());
    });
  }

  #sendAll(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    const reads: Waiting[] = [];
    const others: Waiting[] = [];
    for (const statement of waiting) (isRead(statement.text) ? reads : others).push(statement);
    for (let at = 0; at < reads.length; at += PER_CONNECTION)
      void this.#sendTogether(reads.slice(at, at + PER_CONNECTION));
    for (const statement of others) void this.#sendTogether([statement]);
  }

  async #sendTogether(statements: readonly Waiting[]): Promise<void> {
    let client: pg.PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      for (const { reject } of statements) reject(error);
      return;
    }
    const answers = inOneWrite(client, () =>
      statements.map(({ text, values, resolve, reject }) =>
        client.query(text, values as unknown[]).then(({ rows }) => resolve(rows), reject),
      ),
    );
    await Promise.all(answers);
    client.release(); // one that was lost is not taken back by the pool
  }
}

const isReadByText = new Map<string, boolean>();

/** Whether a statement waits for nobody's rows. */
function isRead(text: string): boolean {
  const known = isReadByText.get(text);
  if (known !== undefined) return known;
  const found = /^\s*select\b/i.test(text) && !LOCKS_ROWS.test(text);
  if (isReadByText.size < MAX_TEXTS) isReadByText.set(text, found);
  return found;
}

const LOCKS_ROWS = /\bfor\s+(no\s+key\s+|key\s+)?(update|share)\b/i;

/** What `send` gives the connection leaves together. */
function inOneWrite<T>(client: pg.PoolClient, send: () => T): T {
  const stream = streamOf(client);
  stream.cork();
  try {
    return send();
  } finally {
    stream.uncork();
  }
}

interface Corked {
  cork(): void;
  uncork(): void;
}

/** The socket of a connection; the driver does not show it, and corks and uncorks it in the same way itself. */
export function streamOf(client: pg.PoolClient): Corked {
  return (client as unknown as { connection: { stream: Corked } }).connection.stream;
}
