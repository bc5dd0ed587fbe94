import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { LIMITS } from "../kernel/limits.ts";
import { projectFile } from "../telemetry/project-root.ts";
import { isWaitForLockOver } from "./unavailable.ts";

/**
 * Migrations are SQL files, applied in the order of their names, each in a transaction of its own. They expand first and
 * contract in a later release, because the previous release's code runs on the new schema while processes are replaced.
 *
 * What a release must know before it may use a database stands in `infra.migration`. A migration that only expands is of
 * no concern to a release that does not know it, and stands in `infra.expansion`.
 */
export interface Migration {
  /** File name without its suffix, such as `0001-initial`. */
  name: string;
  sql: string;
}

/** A file that begins like this takes something away that the release before it uses. */
const CONTRACTS = /^-- contracts\b/i;

/** Whether a release that does not know the migration can use the database after it. */
export function onlyExpands({ name, sql }: Migration): boolean {
  return !name.startsWith("0001-") && !CONTRACTS.test(sql);
}

/** Any constant that nothing else in the database uses. */
const MIGRATION_LOCK = 4_711_001_001n;

const FOLDER = ["infra", "db", "migrations"];

/** The migrations of this release. */
export function migrations(): Migration[] {
  const files = readdirSync(projectFile(...FOLDER)).filter((file) => file.endsWith(".sql"));
  return files.sort().map((file) => ({
    name: file.slice(0, -".sql".length),
    sql: readFileSync(projectFile(...FOLDER, file), "utf8"),
  }));
}

/** The database is newer than this release: it must not be written to. */
export class DatabaseTooNew extends Error {
  override readonly name = "DatabaseTooNew";

  constructor(unknown: readonly string[]) {
    super(`The database was migrated by a later release (${unknown.join(", ")}). Start that release instead.`);
  }
}

/** Applies what is missing and returns its names. Processes that start together wait for the first of them. */
export async function migrate(url: string, wanted: readonly Migration[] = migrations()): Promise<string[]> {
  const client = new pg.Client({ connectionString: url, application_name: "nodus migrate" });
  await client.connect();
  try {
    await client.query("select pg_advisory_lock($1)", [MIGRATION_LOCK]);
    await client.query(BOOKS);
    const unknown = await laterThan(async (text) => (await client.query(text)).rows, wanted);
    if (unknown.length > 0) throw new DatabaseTooNew(unknown);
    const { rows } = await client.query<{ name: string }>(
      "select name from infra.migration union select name from infra.expansion",
    );
    const applied = new Set(rows.map((row) => row.name));
    const missing = wanted.filter((m) => !applied.has(m.name));
    for (const migration of missing) await apply(client, migration);
    return missing.map((m) => m.name);
  } finally {
    await client.end(); // also lets go of the lock
  }
}

/** Which migrations are applied. */
const BOOKS = `create schema if not exists infra;
  create table if not exists infra.migration (name text primary key, applied_at timestamptz not null);
  create table if not exists infra.expansion (name text primary key, applied_at timestamptz not null)`;

/**
 * Names of migrations that a release with `known` ones would have to know: none while it may use the database. They may
 * come at any time while it runs, when a later release starts beside it.
 */
export async function laterThan(
  read: (text: string) => Promise<{ name: string }[]>,
  known: readonly Migration[],
): Promise<string[]> {
  const needed = await read("select name from infra.migration order by name");
  return needed.map((row) => row.name).filter((name) => !known.some((m) => m.name === name));
}

/**
 * Applies one in a transaction. Whoever asks for a table queues up behind a change of it that waits, so it waits shortly
 * and comes again: a session that was left in a transaction delays the migration and not the processes at work.
 */
async function apply(client: pg.Client, migration: Migration): Promise<void> {
  const until = performance.now() + LIMITS.migrationLockMs;
  for (;;) {
    try {
      return await applyOnce(client, migration);
    } catch (cause) {
      if (!isWaitForLockOver(cause)) throw new Error(`migration ${migration.name} failed`, { cause });
      if (performance.now() > until)
        throw new Error(`migration ${migration.name} waited in vain for what another session holds`, { cause });
      await sleep(LIMITS.migrationPauseMs);
    }
  }
}

async function applyOnce(client: pg.Client, migration: Migration): Promise<void> {
  await client.query("begin");
  try {
    await client.query(`set local lock_timeout = ${LIMITS.migrationLockWaitMs}`);
    await client.query(migration.sql);
    const book = onlyExpands(migration) ? "infra.expansion" : "infra.migration";
    await client.query(`insert into ${book} (name, applied_at) values ($1, now())`, [migration.name]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}
