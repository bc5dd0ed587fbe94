import {
  type PgPool,
  type PgPoolClient,
  PostgresConnection,
  PostgresQueueBackend,
  Queue,
  runMigrations,
  Worker,
} from "bullmq";
import pg from "pg";
import type { Logger } from "../telemetry/logger.ts";
import { IDLE_CHECK_SECONDS, KEPT_EVENTS, type QueueBackend, STORE_RETRY_MS, workerOptions } from "./backend.ts";

/** The schema is fixed by BullMQ for pools that it did not make itself. */
const SCHEMA = "bullmq";
/** Connections for statements, shared by all queues of the process; each worker listens on one more. */
const STATEMENT_CONNECTIONS = 8;
const STATEMENT_TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** Opens BullMQ's store in a schema of its own of the same database, bringing that schema up to date first. */
export async function openPostgresBackend(url: string, logger: Logger): Promise<QueueBackend> {
  await migrate(url);
  const pools = new Pools(url, logger);
  const bull = (name: string, opts: object, role: { withBlockingConnection?: boolean } = {}) =>
    new Backend(new Connection(pools), name, opts as never, true, role.withBlockingConnection ? name : undefined);
  const connection = pools as never; // BullMQ only checks that there is one
  return {
    kind: "postgres",
    openQueue: (name) => new Queue(name, { connection, streams: { events: { maxLen: KEPT_EVENTS } } }, bull as never),
    openWorker: (name, run, settings) =>
      new Worker(
        name,
        (job, token) => run(job, token ?? ""),
        { connection, ...workerOptions(settings) },
        bull as never,
      ),
    ping: async () => void (await pools.query("select 1")),
    close: () => pools.close(),
  };
}

async function migrate(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  await client.connect();
  try {
    await runMigrations(client, SCHEMA);
  } finally {
    await client.end();
  }
}

/**
 * Two pools in the shape that BullMQ takes one: statements share a few connections, and listeners, which keep theirs for
 * good, can never use those up.
 */
class Pools implements PgPool {
  /** Read by BullMQ: drops of a silent connection are noticed. */
  readonly options = { keepAlive: true };
  readonly #statements: pg.Pool;
  readonly #listeners: pg.Pool;

  constructor(url: string, logger: Logger) {
    const config: pg.PoolConfig = {
      connectionString: url,
      options: `-c search_path=${SCHEMA}`,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      idleTimeoutMillis: 60_000,
      query_timeout: STATEMENT_TIMEOUT_MS,
      application_name: "nodus queue",
    };
    this.#statements = new pg.Pool({ ...config, max: STATEMENT_CONNECTIONS });
    this.#listeners = new pg.Pool({ ...config, max: 1_000 });
    const report = (err: Error) => logger.warn({ err }, "the queue lost an idle database connection");
    this.#statements.on("error", report);
    this.#listeners.on("error", report);
  }

  async query(text: string, values?: readonly unknown[]): Promise<never> {
    return (await orUnreachable(() => this.#statements.query(text, values as unknown[]))) as never;
  }

  connect(): Promise<PgPoolClient> {
    return orUnreachable(() => this.#listeners.connect()) as Promise<never>;
  }

  /** BullMQ's connections do not own the pools; `close` ends them. */
  async end(): Promise<void> {}

  on(): this {
    return this;
  }

  removeAllListeners(): this {
    return this;
  }

  async close(): Promise<void> {
    await Promise.all([this.#statements.end(), this.#listeners.end()]);
  }
}

/** Spelled as a refused connection, because that is the one loss that BullMQ waits for and then repeats its call. */
class QueueUnreachable extends Error {
  override readonly name = "QueueUnreachable";
  readonly code = "ECONNREFUSED";
}

/** SQLSTATE classes 08 (connection) and 57P (shutdown, starting up); 53300 is too many connections. */
const LOST = /^(08...|57P0.|53300|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOENT|EAI_AGAIN)$/;
const LOST_TEXT =
  /connection terminated|timeout exceeded when trying to connect|client has encountered a connection error/i;

async function orUnreachable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (!LOST.test(code ?? "") && !LOST_TEXT.test(message)) throw error;
    // Without a pause every worker would spin through its loop until the database is back.
    await new Promise((resolve) => setTimeout(resolve, STORE_RETRY_MS));
    throw new QueueUnreachable("the queue's database cannot be reached", { cause: error });
  }
}

/** BullMQ remembers a first failed connection for good; the schema is known to be there, so there is nothing to wait for. */
class Connection extends PostgresConnection {
  override async waitUntilReady(): Promise<void> {}
}

/** BullMQ trusts notifications for an hour; a look every few seconds costs one short statement. */
class Backend extends PostgresQueueBackend {
  override get maximumBlockTimeout(): number {
    return IDLE_CHECK_SECONDS;
  }
}
