import DataLoader from "dataloader";
import { Database, type Queryer } from "../db/database.ts";

/** Things that one statement is asked for at most. */
const MOST_TOGETHER = 500;

/**
 * Reads of one thing each that are asked for in the same turn of the event loop, made by one statement for each
 * database, whichever requests and teams ask: what is wanted says whose it is. The statement begins after the turn, so
 * every caller gets what was there after it asked. Nothing is kept.
 */
export class BatchedReads<K, V> {
  readonly #loaders = new WeakMap<Queryer, DataLoader<K, V, string>>();
  readonly #nameOf: (wanted: K) => string;
  readonly #readMany: (q: Queryer, wanted: readonly K[]) => Promise<V[]>;

  /**
   * @param nameOf what is wanted by the same name is read once
   * @param readMany gives an answer for each that is wanted, in their order
   */
  constructor(nameOf: (wanted: K) => string, readMany: (q: Queryer, wanted: readonly K[]) => Promise<V[]>) {
    this.#nameOf = nameOf;
    this.#readMany = readMany;
  }

  read(q: Queryer, wanted: K): Promise<V> {
    const shared = sharedBy(q);
    const loader = this.#loaders.get(shared) ?? this.#loaderOf(shared);
    return loader.load(wanted);
  }

  #loaderOf(q: Queryer): DataLoader<K, V, string> {
    const readMany = (wanted: readonly K[]) => {
      loader.clearAll(); // from here on it may be too old for somebody
      return this.#readMany(q, wanted);
    };
    const loader = new DataLoader<K, V, string>(readMany, {
      cacheKeyFn: this.#nameOf,
      maxBatchSize: MOST_TOGETHER,
      batchScheduleFn: setImmediate,
    });
    this.#loaders.set(q, loader);
    return loader;
  }
}

/** Each request has a database of its team: all of them are the one that they were made of. */
function sharedBy(q: Queryer): Queryer {
  return q instanceof Database ? (q.whole ?? q) : q;
}

/** What belongs to a team and has an id. */
export interface Owned {
  tenantId: string;
  id: string;
}

export function ownedName({ tenantId, id }: Owned): string {
  return `${tenantId} ${id}`;
}

/** The condition that a row is one of those that are owned; `$1` and `$2` are `ownedValues`. */
export const ONE_OF_THE_OWNED = "in (select * from unnest($1::text[], $2::text[]))";

export function ownedValues(owned: readonly Owned[]): [tenantIds: string[], ids: string[]] {
  return [owned.map(({ tenantId }) => tenantId), owned.map(({ id }) => id)];
}

/** Puts rows into the order of those they were asked for; null where there is none. */
export function inOrder<R>(owned: readonly Owned[], rows: readonly R[], ownedOf: (row: R) => Owned): (R | null)[] {
  const found = new Map(rows.map((row) => [ownedName(ownedOf(row)), row]));
  return owned.map((one) => found.get(ownedName(one)) ?? null);
}
