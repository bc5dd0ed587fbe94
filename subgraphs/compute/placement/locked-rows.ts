import type { Queryer } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";

/** A row that somebody else had locked when it was wanted. */
export interface LockedRow {
  id: string;
  /** Names the transaction that holds it, or the last one that did. */
  holder: string;
}

/** Tables of which a claim passes over rows that are locked. */
export type LockedTable = "compute.account" | "compute.capacity";

/** Who holds rows that were just found locked; what does not exist is left out. */
export async function holdersOf(
  q: Queryer,
  table: LockedTable,
  ids: readonly string[],
): Promise<Map<string, LockedRow>> {
  if (ids.length === 0) return new Map();
  // A row's xmax is the transaction that has locked it or is about to replace it.
  const rows = await q.sql<LockedRow>(`select id, xmax::text as holder from ${table} where id = any($1)`, [ids]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** The holder of a row that was let go of, in a new version, before it could be seen who had it. */
const NOBODY = "0";

/**
 * What the claims of a process have found locked, to tell a row that one transaction holds from one that many write, each
 * for a moment.
 */
export class LockedRows {
  readonly #seen = new Map<string, { holder: string; since: Date; at: Date }>();

  /** How long to leave a row alone that is found locked, in milliseconds: longer when the same holder had it before. */
  leaveAloneMs({ id, holder }: LockedRow, now: Date): number {
    this.#forget(now);
    const before = this.#seen.get(id);
    const since = before && before.holder === holder && holder !== NOBODY ? before.since : now;
    this.#seen.set(id, { holder, since, at: now });
    // A claim that begins again finds it at the same moment once more.
    return since.getTime() === now.getTime() ? LIMITS.busyStageMs : LIMITS.heldStageMs;
  }

  /** What nobody wanted for so long was let go of, or is found again. */
  #forget(now: Date): void {
    for (const [id, { at }] of this.#seen)
      if (Math.abs(now.getTime() - at.getTime()) > LIMITS.heldTeamForgottenMs) this.#seen.delete(id);
  }
}
