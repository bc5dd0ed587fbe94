import { tableOf } from "../../infra/db/columns.ts";
import type { EntityClass, Tx } from "../../infra/db/database.ts";

/** Tables whose rows commands wait for, in the order in which they have to. */
const RANK: Readonly<Record<string, number>> = {
  "compute.workload": 1,
  "compute.supplier": 2,
  "compute.offer": 2,
  "compute.capacity": 3,
  "compute.account": 4,
};
/** Rows of a workload: whoever has locked that may lock them at any time. */
const UNDER_WORKLOAD = ["compute.stage", "compute.placement", "compute.attempt"];

/**
 * Looks at which tables a command locks rows of, one after another. A test that waits for deadlocks sees those that come
 * up; this sees the order that would make them possible, whether somebody else was there or not.
 */
export class LockOrder {
  readonly faults = new Set<string>();

  /** The transaction, noted from its begin to its end. */
  watched(tx: Tx): Tx {
    const held = new Set<string>();
    const note = (text: string) => this.#note(held, text);
    const noted = (type: EntityClass, tail: string) => note(`select from ${tableOf(type)} ${tail}`);
    const watched: Partial<Tx> = {
      sql: (text, values) => {
        note(text);
        return tx.sql(text, values);
      },
      sqlAndCommit: (text, values) => {
        note(text);
        return tx.sqlAndCommit(text, values);
      },
      rows: (type, tail, values) => {
        noted(type, tail);
        return tx.rows(type, tail, values);
      },
      row: (type, tail, values) => {
        noted(type, tail);
        return tx.row(type, tail, values);
      },
    };
    return Object.assign(Object.create(tx) as Tx, watched);
  }

  #note(held: Set<string>, text: string): void {
    for (const table of lockedBy(text)) {
      const rank = UNDER_WORKLOAD.includes(table) ? RANK["compute.workload"]! : RANK[table];
      if (rank === undefined) continue;
      const covered = held.has(table) || (UNDER_WORKLOAD.includes(table) && held.has("compute.workload"));
      const later = [...held].find((other) => (RANK[other] ?? 0) > rank);
      if (!covered && later && !WAITS_FOR_NOBODY.test(text))
        this.faults.add(`${table} after ${later}: ${text.trim().replace(/\s+/g, " ").slice(0, 120)}`);
      held.add(table);
    }
  }
}

const WAITS_FOR_NOBODY = /\b(skip locked|nowait)\b/i;

/** Tables of which a statement locks rows that others may hold, in the order in which it names them. */
function lockedBy(text: string): string[] {
  const locks = /\bfor (no key )?(update|share)\b/i.test(text);
  const named = locks ? /\b(?:from|join|update) (compute\.\w+)/gi : /(?<!\bfor )\bupdate (compute\.\w+)/gi;
  return [...text.matchAll(named)].map((match) => match[1]!.toLowerCase());
}
