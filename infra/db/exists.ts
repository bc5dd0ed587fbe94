import { tableOf } from "./columns.ts";
import type { EntityClass, Queryer } from "./database.ts";

/** Tells whether a tenant has an object of a kind. */
export type Exists = (q: Queryer, tenantId: string, id: string) => Promise<boolean>;

/** `Exists` of an entity whose table has `tenant_id` and `id`. */
export function existsIn(type: EntityClass): Exists {
  const text = `select 1 from ${tableOf(type)} where tenant_id = $1 and id = $2`;
  return async (q, tenantId, id) => (await q.sql(text, [tenantId, id])).length > 0;
}
