import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Database } from "../../infra/db/database.ts";
import { startEmbeddedPostgres } from "../../infra/db/embedded/embedded-postgres.ts";
import { readPidFile } from "../../infra/db/embedded/pid-file.ts";
import { postgresFolder } from "../../infra/db/embedded/place.ts";
import { migrate } from "../../infra/db/migrate.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { allEntities } from "../entities.ts";

/** A database that simulated worlds may do with as they like, one after another. */
export class SimulationDatabase {
  readonly db: Database;
  readonly #looking: Database;
  #tables: readonly string[] = [];

  private constructor(db: Database, looking: Database) {
    this.db = db;
    this.#looking = looking;
  }

  /** @param url of a database that has been migrated, and that nobody else uses */
  static async open(url: string): Promise<SimulationDatabase> {
    const db = await Database.open({ url, entities: allEntities, poolSize: 4 });
    // Looks are long statements over a handful of rows: planning one anew costs far more than a worse plan.
    // This connection is set as well: it is the one that most operations use.
    await db.sql(`do $$ begin
      execute format('alter database %I set plan_cache_mode = force_generic_plan', current_database());
      set plan_cache_mode = force_generic_plan;
    end $$`);
    return new SimulationDatabase(db, await Database.open({ url, entities: [], poolSize: 1 }));
  }

  /** A statement of those who only look, on a connection of their own. */
  look<R>(text: string, values: readonly unknown[]): Promise<R[]> {
    return this.#looking.sql<R>(text, values);
  }

  async close(): Promise<void> {
    await this.#looking.close();
    await this.db.close();
  }

  /** Removes every row. */
  async empty(): Promise<void> {
    const tables = await this.#allTables();
    const filled = await this.db.sql<{ name: string }>(
      tables.map((table) => `(select '${table}' as name from ${table} limit 1)`).join(" union all "),
    );
    // Each table that is truncated gets new files, and most of them have had no row.
    if (filled.length > 0) await this.db.sql(`truncate ${filled.map(({ name }) => name).join(", ")} cascade`);
  }

  /** SHA-256 of every row of every table. */
  async digest(): Promise<string> {
    const hash = createHash("sha256");
    for (const table of await this.#allTables()) {
      const rows = await this.db.sql<{ row: string }>(`select to_jsonb(t)::text as row from ${table} t order by 1`);
      for (const { row } of rows) hash.update(`${table} ${row}\n`);
    }
    return hash.digest("hex");
  }

  async #allTables(): Promise<readonly string[]> {
    if (this.#tables.length > 0) return this.#tables;
    const rows = await this.db.sql<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname not in ('pg_catalog', 'information_schema') and (schemaname, tablename) <> ('infra', 'migration')
       order by 1`,
    );
    this.#tables = rows.map(({ name }) => name);
    return this.#tables;
  }
}

/** A folder for a PostgreSQL of one's own, in the temporary folder. */
export function throwAwayFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-simulation-"));
  chmodSync(folder, 0o711); // so that PostgreSQL's own account can enter when root simulates
  return folder;
}

/** Starts a PostgreSQL that promises nothing after a power cut, in such a folder; `close` removes all of it. */
export async function throwAwayDatabase(
  dataDir: string,
): Promise<{ database: SimulationDatabase; close(): Promise<void> }> {
  const logger = createLogger({ level: "error", role: "simulation" });
  const postgres = await startEmbeddedPostgres({ dataDir, logger, durable: false });
  try {
    await migrate(postgres.url);
    const database = await SimulationDatabase.open(postgres.url);
    const close = async () => {
      await database.close();
      await postgres.stop();
      removeThrowAway(dataDir);
    };
    return { database, close };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

/** Removes what is left in such a folder by a process that could not do so, a running PostgreSQL included. */
export function removeThrowAway(dataDir: string): void {
  if (!existsSync(dataDir)) return;
  const folder = postgresFolder(dataDir); // not always within the other
  const server = readPidFile(folder);
  try {
    if (server) process.kill(server.pid, "SIGQUIT");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // it has ended meanwhile
  }
  // What ends at this moment may still write.
  for (const left of [folder, dataDir]) rmSync(left, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
