import { createHash } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Database } from "../../infra/db/database.ts";
import { startEmbeddedPostgres } from "../../infra/db/embedded/embedded-postgres.ts";
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
    await db.sql(
      "do $$ begin execute format('alter database %I set plan_cache_mode = force_generic_plan', current_database()); end $$",
    );
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

/** A PostgreSQL of one's own, and what it would leave if its owner was killed. */
export interface ThrowAwayDatabase {
  database: SimulationDatabase;
  postgresPid: number;
  folders: string[];
  /** Removes all of it. */
  close(): Promise<void>;
}

/** Starts a PostgreSQL that promises nothing after a power cut, in a folder of its own. */
export async function throwAwayDatabase(): Promise<ThrowAwayDatabase> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "nodus-simulation-"));
  chmodSync(dataDir, 0o711); // so that PostgreSQL's own account can enter when root simulates
  const logger = createLogger({ level: "error", role: "simulation" });
  const postgres = await startEmbeddedPostgres({ dataDir, logger, durable: false });
  await migrate(postgres.url);
  const database = await SimulationDatabase.open(postgres.url);
  return {
    database,
    postgresPid: postgres.pid(),
    folders: [dataDir, postgres.folder],
    close: async () => {
      await database.close();
      await postgres.stop();
      rmSync(dataDir, { recursive: true, force: true });
      rmSync(postgres.folder, { recursive: true, force: true });
    },
  };
}
