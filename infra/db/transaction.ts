import type { MikroORM, SqlEntityManager } from "@mikro-orm/postgresql";
import { Kysely, PostgresDialect } from "kysely";
import type pg from "pg";
import { streamOf } from "./statements.ts";

/** What a statement can always be sent with: one that stays behind would let its COMMIT go alone. */
export type Plain = string | number | bigint | boolean | Date | null | readonly (string | number)[];

/** One open transaction. */
export interface Transaction {
  run(text: string, values: readonly unknown[]): Promise<unknown[]>;
  /** A statement with the COMMIT behind it in one write; it is the last one. */
  runAndCommit(text: string, values: readonly Plain[]): Promise<unknown[]>;
  /** A unit of work within the transaction, made when it is first asked for; what it holds is written before the commit. */
  em(): SqlEntityManager;
}

/**
 * Runs `work` in one transaction at READ COMMITTED on one connection: committed when it resolves, rolled back when it
 * rejects. BEGIN costs no round trip of its own, it leaves with the first statement, and with it how long each statement
 * may wait for a lock; null for the connection's own bound.
 */
export async function inTransaction<T>(
  pool: pg.Pool,
  orm: MikroORM,
  lockWaitMs: number | null,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    return await committed(client, orm, lockWaitMs, work);
  } catch (error) {
    await client.query("rollback").catch((lost: Error) => {
      broken = lost; // nothing to roll back on a connection that is gone; the pool must not give it out again
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

async function committed<T>(
  client: pg.PoolClient,
  orm: MikroORM,
  lockWaitMs: number | null,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  let em: SqlEntityManager | null = null;
  let commit: Promise<{ command: string }> | null = null;
  const stream = streamOf(client);
  stream.cork();
  const begun = client.query(
    lockWaitMs === null ? "begin" : `begin; set local lock_timeout = ${Math.ceil(lockWaitMs)}`,
  );
  begun.catch(() => {}); // told by the statement after it, and below
  let first = true;
  const leave = () => {
    if (first) stream.uncork();
    first = false;
  };
  const send = (text: string, values: readonly unknown[]) => {
    if (commit) throw new Error("the command has had its last statement");
    stream.cork();
    process.nextTick(() => stream.uncork()); // with what else is asked for in this turn
    const answered = client.query(text, values as unknown[]);
    leave();
    return answered;
  };
  let answer: T;
  try {
    answer = await work({
      run: async (text, values) => (await send(text, values)).rows,
      runAndCommit: async (text, values) => {
        if (em) throw new Error("a unit of work is written after the last statement");
        const answered = send(text, values);
        commit = client.query("commit");
        commit.catch(() => {}); // told below, unless the statement's own failure comes first
        return (await answered).rows;
      },
      em: () => {
        leave();
        em ??= unitOfWork(orm, client);
        return em;
      },
    });
  } finally {
    leave(); // also when it threw before it was a promise: what is corked would never leave, the rollback neither
  }
  await (em as SqlEntityManager | null)?.flush();
  await begun;
  const { command } = await ((commit as Promise<{ command: string }> | null) ?? client.query("commit"));
  // The server answers a COMMIT of a transaction that has failed with a rollback, as if that was asked for.
  if (command !== "COMMIT")
    throw new Error("a statement failed and its error was not passed on: nothing was committed");
  return answer;
}

/** MikroORM on the transaction's connection. */
function unitOfWork(orm: MikroORM, client: pg.PoolClient): SqlEntityManager {
  const connection = { query: (sql: string, values: unknown[]) => client.query(sql, values), release: () => {} };
  const pool = { connect: async () => connection, end: async () => {} };
  const em = orm.em.fork() as SqlEntityManager;
  em.setTransactionContext(new Kysely({ dialect: new PostgresDialect({ pool: pool as never }) }));
  return em;
}
