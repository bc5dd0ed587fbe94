import { LIMITS } from "../kernel/limits.ts";
import type { Database } from "./database.ts";

/**
 * A column with a time that the platform waits for, or counts from. A text in it is SQL over the row `t`; numbers are
 * milliseconds.
 */
export interface AwaitedTime {
  /** With its schema. */
  table: string;
  /** The column that names a row. */
  key: string;
  column: string;
  /** Which rows are waited for. */
  where: string;
  /** No time is written farther ahead than this. */
  farthestMs: number | string;
  /** How long is still waited for a time that lies beyond it: a lease's holder may be alive, what was due is due. */
  graceMs: number | string;
}

/** Rows of a table that one call draws in. */
const BATCH = 1_000;

/**
 * After the wall clock was set back, whatever was due by then would wait until it has caught up. This draws in every time
 * that lies farther ahead than any machine could write now, `$1`, whose clock is at most `LIMITS.clockSkewMs` ahead of
 * this one's. Answers how many rows of which columns it drew in. One statement when there are none.
 */
export async function drawIn(
  db: Pick<Database, "sql">,
  times: readonly AwaitedTime[],
  now: Date,
): Promise<Readonly<Record<string, number>>> {
  const asked = times.map((time, n) => `select ${n} as n where exists (select 1 from ${farAhead(time)})`);
  const found = await db.sql<{ n: number }>(asked.join(" union all "), [now]);
  const drawn: Record<string, number> = {};
  for (const { n } of found) {
    const time = times[n]!;
    const name = `${time.table}.${time.column}`;
    const rows = await db.sql(
      `update ${time.table} t set ${time.column} = ${inFuture(time.graceMs)} where t.${time.key} in (
         select t.${time.key} from ${farAhead(time)} limit ${BATCH} for update skip locked) returning 1`,
      [now],
    );
    drawn[name] = (drawn[name] ?? 0) + rows.length;
  }
  return drawn;
}

/** The first comparison is one that an index of the column answers. */
function farAhead({ table, column, where, farthestMs }: AwaitedTime): string {
  return `${table} t where t.${column} > ${inFuture(LIMITS.clockSkewMs)} and (${where})
    and t.${column} > ${inFuture(`(${farthestMs}) + ${LIMITS.clockSkewMs}`)}`;
}

function inFuture(ms: number | string): string {
  return `$1::timestamptz + make_interval(secs => (${ms}) / 1000.0)`;
}
