import { existsSync } from "node:fs";
import pg from "pg";
import type { Logger } from "../../telemetry/logger.ts";
import { postgresAccount } from "./account.ts";
import { findBinaries } from "./binaries.ts";
import { checkVersion, createCluster, DATABASE_USER, readPassword } from "./cluster.ts";
import { clusterOf, postgresFolder, reachableBinaries } from "./place.ts";
import { type LaunchOptions, launch } from "./postmaster.ts";
import { supervise } from "./supervise.ts";

const DATABASE_NAME = "nodus";

export interface EmbeddedPostgresOptions {
  /** The platform's data folder; the database's own folder is found from it. */
  dataDir: string;
  logger: Logger;
  /** How long a start may take, recovery after a crash included. */
  startTimeoutMs?: number;
  /** False gives up the promise that a commit survives a power cut. Only for tests. */
  durable?: boolean;
}

/** The PostgreSQL that comes with the platform, running. */
export interface EmbeddedPostgres {
  /**
   * Connection string of the platform's database: its Unix socket, or 127.0.0.1 where the socket's path would be too
   * long. The server listens on both. Holds the password: never log it.
   */
  readonly url: string;
  /** Where its files are, which under root may be outside the data folder. */
  readonly folder: string;
  /** True when it was running already, left by a platform that was killed. */
  readonly adopted: boolean;
  /** The user that it runs as; null when that is the platform's own. */
  readonly uid: number | null;
  /** Process id of the server now; another one after a restart. */
  pid(): number;
  /** Fast shutdown: open transactions are rolled back, everything committed is on disk. */
  stop(): Promise<void>;
  /** Stops watching over it and leaves it running: it belongs to another platform. */
  leave(): void;
}

/**
 * Starts PostgreSQL on the platform's data folder, or adopts the one that a killed platform left running there. It is
 * made on first use, recovers by itself from an unclean stop, and is started again when it dies. Throws with the end
 * of its log when it does not start in time.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { logger, durable = true, startTimeoutMs = 120_000 } = options;
  const folder = postgresFolder(options.dataDir);
  const account = postgresAccount(clusterOf(folder));
  const binaries = reachableBinaries(findBinaries(), account);
  if (!existsSync(clusterOf(folder))) await createCluster(folder, binaries, account, durable);
  checkVersion(folder, binaries);

  const order: LaunchOptions = { folder, binaries, account, port: null, durable, timeoutMs: startTimeoutMs };
  const first = await launch(order);
  const server = supervise(first, folder, () => launch({ ...order, port: first.port }), logger);
  const host = encodeURIComponent(first.socketFolder ?? "127.0.0.1");
  const url = `postgres://${DATABASE_USER}:${readPassword(folder)}@${host}:${first.port}/${DATABASE_NAME}`;
  await createDatabase(url);
  logger.info({ postgresPid: first.pid, port: first.port, adopted: first.adopted, folder }, "PostgreSQL is ready");
  return {
    url,
    folder,
    adopted: first.adopted,
    uid: account?.uid ?? null,
    pid: () => server.current().pid,
    stop: () => server.stop(30_000),
    leave: () => server.leave(),
  };
}

async function createDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl(url, "postgres"), connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    const { rowCount } = await client.query("select 1 from pg_database where datname = $1", [DATABASE_NAME]);
    if (rowCount === 0) await client.query(`create database ${DATABASE_NAME}`);
  } catch (error) {
    const made = ["42P04", "23505"]; // another platform makes it at this moment: seen first by a check, or by the index
    if (!made.includes((error as { code?: string }).code!)) throw error;
  } finally {
    await client.end();
  }
}

/** The same server, another database. */
export function databaseUrl(url: string, database: string): string {
  const other = new URL(url);
  other.pathname = `/${database}`;
  return other.href;
}
