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
  #tables: readonly string[] = [];

  constructor(db: Database) {
    this.db = db;
  }

  /** Removes every row. */
  async empty(): Promise<void> {
    await this.db.sql(`truncate ${(await this.#allTables()).join(", ")}`);
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

/** Starts a PostgreSQL that promises nothing after a power cut, in a folder of its own; `close` removes all of it. */
export async function throwAwayDatabase(): Promise<{ database: SimulationDatabase; close(): Promise<void> }> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "nodus-simulation-"));
  chmodSync(dataDir, 0o711); // so that PostgreSQL's own account can enter when root simulates
  const logger = createLogger({ level: "error", role: "simulation" });
  const postgres = await startEmbeddedPostgres({ dataDir, logger, durable: false });
  await migrate(postgres.url);
  const db = await Database.open({ url: postgres.url, entities: allEntities, poolSize: 4 });
  return {
    database: new SimulationDatabase(db),
    close: async () => {
      await db.close();
      await postgres.stop();
      rmSync(dataDir, { recursive: true, force: true });
      rmSync(postgres.folder, { recursive: true, force: true });
    },
  };
}
