import type { Database } from "../db/database.ts";
import type { Clock } from "../kernel/clock.ts";
import { removalTime } from "./claim-bytes.ts";
import type { ObjectStore } from "./object-store.ts";

/** A store that has failed so many removals one after the other is away. */
const FAILURES_IN_A_ROW = 3;

export interface RemovalDeps {
  db: Database;
  objects: Pick<ObjectStore, "remove">;
  clock: Clock;
}

/** Objects whose rows say that this process removes them. */
export interface MarkedObjects {
  /** Where the rows are; its columns are `sha256` and `removing_since`. */
  table: "compute.result_object" | "data.asset_object";
  names: readonly string[];
  /** What `removing_since` says. */
  markedAt: Date;
  /**
   * What becomes of an object whose removal failed, so that nobody knows whether it is there: `free` where whoever claims
   * it stores its bytes again in any case, `marked` where it could be referred to without that; then its lease has to end.
   */
  failed: "free" | "marked";
}

export interface Removed {
  /** Objects that went. */
  removed: number;
  /** What the store failed with, object by object. */
  failures: unknown[];
}

/**
 * Removes marked objects, and their rows unless somebody has taken them over. One that cannot be removed does not keep
 * the others; what this does not come to is free again.
 */
export async function removeMarked(
  { db, objects, clock }: RemovalDeps,
  { table, names, markedAt, failed }: MarkedObjects,
): Promise<Removed> {
  const time = removalTime(clock, markedAt);
  const left = new Set(names);
  const failures: unknown[] = [];
  let removed = 0;
  let inARow = 0;
  try {
    for (const sha256 of names) {
      if (time.isOver || inARow === FAILURES_IN_A_ROW) break;
      left.delete(sha256);
      const failure = await failureOf(objects.remove(sha256));
      if (failure) {
        failures.push(failure.error);
        inARow++;
        if (failed === "free") left.add(sha256);
        continue;
      }
      inARow = 0;
      const settle = `delete from ${table} where sha256 = $1 and removing_since = $2 returning sha256`;
      removed += (await db.sql(settle, [sha256, markedAt])).length;
    }
  } finally {
    const free = `update ${table} set removing_since = null where sha256 = any($1) and removing_since = $2`;
    await db.sql(free, [[...left], markedAt]);
  }
  return { removed, failures };
}

function failureOf(work: Promise<unknown>): Promise<{ error: unknown } | null> {
  return work.then(
    () => null,
    (error: unknown) => ({ error }),
  );
}
