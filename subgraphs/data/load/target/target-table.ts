import pg from "pg";
import { LoadFailure } from "../load-failure.ts";
import { fits, NODUS_COLUMNS, type TargetColumn } from "./target-columns.ts";

const { escapeIdentifier } = pg;

/** The table as it is named in statements. */
export function qualified(table: string): string {
  return `public.${escapeIdentifier(table)}`;
}

/** Takes a lock of this name in the target's database, until the transaction ends. */
export async function lockInTarget(client: pg.Client, name: string): Promise<void> {
  await client.query("select pg_advisory_xact_lock(hashtextextended('nodus/' || $1, 0))", [name]);
}

interface ExistingColumn {
  name: string;
  type: string;
  hasPrecision: boolean;
  /** Whether every row must say it. */
  required: boolean;
}

/** Ordinary tables and partitioned ones. */
const LOADABLE = ["r", "p"];

/**
 * Sees to it that the table is there and takes the file's columns, and says what it did. A table is made in the caller's
 * transaction, one at a time for each name; for a file without columns none is made.
 */
export async function prepareTable(
  client: pg.Client,
  table: string,
  columns: readonly TargetColumn[],
): Promise<"made" | "found" | "none"> {
  let existing = await columnsOf(client, table);
  if (!existing) {
    if (columns.length === 0) return "none";
    await lockInTarget(client, `table/${table}`);
    existing = await columnsOf(client, table);
  }
  if (!existing) {
    await createTable(client, table, columns);
    return "made";
  }
  await checkTable(client, table, { existing, columns });
  return "found";
}

async function createTable(client: pg.Client, table: string, columns: readonly TargetColumn[]): Promise<void> {
  const all = [...columns, ...NODUS_COLUMNS].map(({ name, type }) => `${escapeIdentifier(name)} ${type}`);
  await client.query(`create table ${qualified(table)} (${all.join(", ")})`);
}

/** Earlier rows of a run are looked for with each of its loads. */
export async function indexTable(client: pg.Client, table: string): Promise<void> {
  await client.query(`create index on ${qualified(table)} (nodus_workload_id, nodus_stage)`);
}

/** Null when there is nothing of the name. */
async function columnsOf(client: pg.Client, table: string): Promise<ExistingColumn[] | null> {
  const { rows: found } = await client.query<{ oid: number; kind: string }>(
    "select c.oid, c.relkind as kind from pg_class c where c.relnamespace = 'public'::regnamespace and c.relname = $1",
    [table],
  );
  const [relation] = found;
  if (!relation) return null;
  if (!LOADABLE.includes(relation.kind)) throw new LoadFailure("table_incompatible", "The name is not a table's.");
  const { rows } = await client.query<ExistingColumn>(
    `select a.attname as name, format_type(a.atttypid, null) as type, a.atttypmod >= 0 as "hasPrecision",
       a.attnotnull and not a.atthasdef and a.attidentity = '' as required
     from pg_attribute a where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped`,
    [relation.oid],
  );
  return rows;
}

async function checkTable(
  client: pg.Client,
  table: string,
  { existing, columns }: { existing: readonly ExistingColumn[]; columns: readonly TargetColumn[] },
): Promise<void> {
  const known = new Map(existing.map((column) => [column.name, column]));
  for (const column of columns) {
    const there = known.get(column.name);
    if (!there) throw new LoadFailure("table_incompatible", "The table lacks a column of the file.");
    if (!fits(column, there.type, there.hasPrecision))
      throw new LoadFailure("type_mismatch", `A column of ${there.type} does not take ${column.type}.`);
  }
  const given = new Set<string>([...columns, ...NODUS_COLUMNS].map(({ name }) => name));
  if (existing.some(({ name, required }) => required && !given.has(name)))
    throw new LoadFailure("table_incompatible", "The table requires a column that the file lacks.");
  await addOwnColumns(client, table, known);
}

/** A table that the team made itself gets the platform's columns, which its older rows leave empty. */
async function addOwnColumns(
  client: pg.Client,
  table: string,
  known: ReadonlyMap<string, ExistingColumn>,
): Promise<void> {
  const odd = NODUS_COLUMNS.find(({ name, type }) => (known.get(name)?.type ?? type) !== type);
  if (odd) throw new LoadFailure("table_incompatible", `The table's ${odd.name} is not of type ${odd.type}.`);
  const lacking = NODUS_COLUMNS.filter(({ name }) => !known.has(name));
  if (lacking.length === 0) return;
  const added = lacking.map(({ name, type }) => `add column if not exists ${name} ${type}`);
  await client.query(`alter table ${qualified(table)} ${added.join(", ")}`);
}
