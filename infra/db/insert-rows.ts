import { columnName, tableOf } from "./columns.ts";
import type { EntityClass, Queryer } from "./database.ts";

/**
 * Inserts rows of an entity in one statement, whatever their number. Every row has the same properties; columns that are
 * not named take their defaults. `conflict` is an `on conflict …` clause.
 */
export async function insertRows<T extends object>(
  q: Queryer,
  type: EntityClass<T>,
  rows: readonly Partial<T>[],
  conflict = "",
): Promise<void> {
  const [first] = rows;
  if (!first) return;
  const columns = Object.keys(first).map(columnName);
  const documents = rows.map((row) => {
    const values = Object.values(row).map((value) => (typeof value === "bigint" ? value.toString() : value));
    return Object.fromEntries(columns.map((column, i) => [column, values[i]]));
  });
  const list = columns.join(", ");
  await q.sql(
    `insert into ${tableOf(type)} (${list}) select ${list} from jsonb_populate_recordset(null::${tableOf(type)}, $1::jsonb) ${conflict}`,
    [JSON.stringify(documents)],
  );
}
