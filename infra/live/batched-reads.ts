import DataLoader from "dataloader";
import type { Queryer } from "../db/database.ts";

/** Things that one statement is asked for at most. */
const MOST_TOGETHER = 500;

/**
 * Reads of one thing each that are asked for in the same turn of the event loop, made by one statement for each
 * database. The statement begins after the turn, so every caller gets what was there after it asked. Nothing is kept.
 */
export class BatchedReads<K, V> {
  readonly #loaders = new WeakMap<Queryer, DataLoader<K, V>>();
  readonly #readMany: (q: Queryer, wanted: readonly K[]) => Promise<V[]>;

  /** @param readMany gives an answer for each that is wanted, in their order; the same may be wanted twice */
  constructor(readMany: (q: Queryer, wanted: readonly K[]) => Promise<V[]>) {
    this.#readMany = readMany;
  }

  read(q: Queryer, wanted: K): Promise<V> {
    const loader = this.#loaders.get(q) ?? this.#loaderOf(q);
    return loader.load(wanted);
  }

  #loaderOf(q: Queryer): DataLoader<K, V> {
    const loader = new DataLoader<K, V>((wanted) => this.#readMany(q, wanted), {
      cache: false,
      maxBatchSize: MOST_TOGETHER,
      batchScheduleFn: setImmediate,
    });
    this.#loaders.set(q, loader);
    return loader;
  }
}

/** What belongs to a team and has an id. */
export interface Owned {
  tenantId: string;
  id: string;
}

/** The condition that a row is one of those that are owned; `$1` and `$2` are `ownedValues`. */
export const ONE_OF_THE_OWNED = "in (select * from unnest($1::text[], $2::text[]))";

export function ownedValues(owned: readonly Owned[]): [tenantIds: string[], ids: string[]] {
  return [owned.map(({ tenantId }) => tenantId), owned.map(({ id }) => id)];
}

/** Puts rows into the order of those they were asked for; null where there is none. */
export function inOrder<R>(owned: readonly Owned[], rows: readonly R[], ownedOf: (row: R) => Owned): (R | null)[] {
  const name = ({ tenantId, id }: Owned) => `${tenantId} ${id}`;
  const found = new Map(rows.map((row) => [name(ownedOf(row)), row]));
  return owned.map((one) => found.get(name(one)) ?? null);
}
