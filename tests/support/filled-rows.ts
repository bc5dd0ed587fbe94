import type { Database } from "../../infra/db/database.ts";

/**
 * Rows of which a test cares for a few columns alone: whatever else a table needs is nonsense. For a test's own database,
 * whose check constraints it takes away.
 */
export class FilledRows {
  readonly #db: Pick<Database, "sql">;
  /** What timestamps have that the test does not care for. */
  readonly #at: Date;

  private constructor(db: Pick<Database, "sql">, at: Date) {
    this.#db = db;
    this.#at = at;
  }

  static async in(db: Pick<Database, "sql">, at: Date): Promise<FilledRows> {
    const checks = await db.sql<{ statement: string }>(
      `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as statement from pg_constraint
       where contype = 'c' and conrelid <> 0`,
    );
    for (const { statement } of checks) await db.sql(statement);
    return new FilledRows(db, at);
  }

  /** Writes a row with these columns, and something in every other one that needs a value. */
  async insert(table: string, given: Readonly<Record<string, unknown>>): Promise<void> {
    const needed = await this.#db.sql<{ column: string; type: string }>(
      `select column_name as column, data_type as type from information_schema.columns
       where table_schema || '.' || table_name = $1 and is_nullable = 'NO'
         and (column_default is null or data_type like 'timestamp%')`,
      [table],
    );
    const filled = Object.fromEntries(needed.map(({ column, type }) => [column, this.#filler(type)]));
    const row = { ...filled, ...given };
    const places = Object.keys(row).map((_, i) => `$${i + 1}`);
    await this.#db.sql(
      `insert into ${table} (${Object.keys(row).join(", ")}) values (${places.join(", ")})`,
      Object.values(row),
    );
  }

  #filler(type: string): unknown {
    return type === "timestamp with time zone" ? this.#at : (FILLERS[type] ?? 0);
  }
}

const FILLERS: Readonly<Record<string, unknown>> = {
  boolean: false,
  jsonb: "{}",
  bytea: Buffer.alloc(0),
  ARRAY: [],
  text: "",
};
