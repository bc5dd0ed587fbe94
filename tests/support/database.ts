import { createHash, randomUUID } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";
import { Database, type EntityClass } from "../../infra/db/database.ts";
import { databaseUrl } from "../../infra/db/embedded/embedded-postgres.ts";
import { migrate, migrations } from "../../infra/db/migrate.ts";

export interface TestDatabase {
  readonly db: Database;
  /** Connection string of a superuser. */
  readonly url: string;
  /** Closes `db` and drops the database, whoever is still connected. */
  close(): Promise<void>;
}

/** A new database with the tables of these entities, copied from a template that is made once per run. */
export async function testDatabase(entities: readonly EntityClass[]): Promise<TestDatabase> {
  const { url, drop } = await createDatabase(await template(entities));
  const db = await Database.open({ url, entities, poolSize: 10 });
  return {
    db,
    url,
    close: async () => {
      await db.close();
      await drop();
    },
  };
}

/** A new database without any table. */
export async function emptyDatabase(): Promise<{ url: string; close(): Promise<void> }> {
  const { url, drop } = await createDatabase("template0");
  return { url, close: drop };
}

async function createDatabase(from: string): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  await asAdmin((admin) => admin.query(`create database ${name} template ${from}`));
  return {
    url: databaseUrl(inject("databaseUrl"), name),
    drop: () => asAdmin((admin) => admin.query(`drop database if exists ${name} with (force)`)).then(() => {}),
  };
}

const TEMPLATE_LOCK = 4_711_001_004n;

/**
 * The name of a database as the migrations make it, made by whichever test process comes first; the name is a hash of
 * what went into it. What entities have beyond the migrations is added, so that a noun can be tested while its migration
 * is not written; another test insists that nothing is left to add.
 */
async function template(entities: readonly EntityClass[]): Promise<string> {
  const hash = createHash("sha256").update(await schemaOf(entities));
  for (const { sql } of migrations()) hash.update(sql);
  const name = `template_${hash.digest("hex").slice(0, 16)}`;
  await asAdmin(async (admin) => {
    await admin.query("select pg_advisory_lock($1)", [TEMPLATE_LOCK]);
    const { rowCount } = await admin.query("select 1 from pg_database where datname = $1", [name]);
    if (rowCount !== 0) return;
    await admin.query(`drop database if exists ${name}_unfinished`); // of a test process that was killed
    await admin.query(`create database ${name}_unfinished template template0`);
    await prepare(databaseUrl(inject("databaseUrl"), `${name}_unfinished`), entities);
    await admin.query(`alter database ${name}_unfinished rename to ${name}`);
  });
  return name;
}

async function prepare(url: string, entities: readonly EntityClass[]): Promise<void> {
  await migrate(url);
  const db = await Database.open({ url, entities });
  try {
    const beyond = await db.orm.schema.getUpdateSchemaSQL({ wrap: false, safe: true, dropTables: false });
    if (beyond) await onServer(new URL(url).pathname.slice(1), (client) => client.query(beyond));
  } finally {
    await db.close();
  }
}

async function schemaOf(entities: readonly EntityClass[]): Promise<string> {
  const db = await Database.open({ url: inject("databaseUrl"), entities });
  try {
    return await db.orm.schema.getCreateSchemaSQL({ wrap: false });
  } finally {
    await db.close();
  }
}

function asAdmin<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  return onServer("postgres", work);
}

async function onServer<T>(database: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl(inject("databaseUrl"), database) });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
