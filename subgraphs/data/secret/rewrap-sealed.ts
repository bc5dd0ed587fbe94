import { tableOf } from "../../../infra/db/columns.ts";
import type { Database, Queryer } from "../../../infra/db/database.ts";
import { SEALED_TABLES, type SealedTable } from "./sealed-tables.ts";
import type { SecretBox } from "./secret-box.ts";

/** What a change of the master key did so far. */
export interface Rewrapped {
  /** The table, as `schema.table`. */
  table: string;
  /** Values that this batch wrapped with the current master key. */
  count: number;
}

/**
 * Wraps every sealed value that another master key wrapped with the current one, in short transactions of at most
 * `batch` rows; yields after each. It may be left after any of them and begun again: values are readable at every moment
 * for whoever has both keys. Values of master keys that are not here stay as they are; see `unreadableCount`.
 */
export async function* rewrapSealed(db: Database, box: SecretBox, batch = 200): AsyncGenerator<Rewrapped> {
  for (const table of SEALED_TABLES) {
    for (;;) {
      const count = await rewrapBatch(db, box, table, batch);
      if (count === 0) break;
      yield { table: tableOf(table.type), count };
    }
  }
}

function rewrapBatch(db: Database, box: SecretBox, table: SealedTable, limit: number): Promise<number> {
  const { columns, valuesOf } = table.key;
  const others = box.keyIds.filter((id) => id !== box.currentKeyId);
  const where = columns.map((column, index) => `${column} = $${index + 3}`).join(" and ");
  return db.command(async (tx) => {
    const order = columns.map((column) => `t.${column}`).join(", ");
    const rows = await tx.rows(table.type, `where t.master_key_id = any($1) order by ${order} limit $2 for update`, [
      others,
      limit,
    ]);
    for (const row of rows) {
      const { masterKeyId, wrappedKey } = box.rewrap(row, table.contextOf(row));
      await tx.sql(`update ${tableOf(table.type)} set master_key_id = $1, wrapped_key = $2 where ${where}`, [
        ...[masterKeyId, wrappedKey],
        ...valuesOf(row),
      ]);
    }
    return rows.length;
  });
}

/** How many values no master key that is here can open. */
export async function unreadableCount(q: Queryer, box: SecretBox): Promise<number> {
  let count = 0n;
  for (const { type } of SEALED_TABLES) {
    const [row] = await q.sql<{ count: bigint }>(
      `select count(*) as count from ${tableOf(type)} where master_key_id <> all($1)`,
      [box.keyIds],
    );
    count += row!.count;
  }
  return Number(count);
}
