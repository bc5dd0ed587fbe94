import type { Queryer } from "../../../infra/db/database.ts";
import { QueryExport } from "./export.entity.ts";

/** The exports that make these assets, in the order asked for; null where there is none to show. */
export async function exportsOfAssets(
  q: Queryer,
  tenantId: string,
  assetIds: readonly string[],
): Promise<(QueryExport | null)[]> {
  const rows = await q.rows(QueryExport, "where t.tenant_id = $1 and t.cleaned_at is null and t.asset_id = any($2)", [
    tenantId,
    assetIds,
  ]);
  const found = new Map(rows.map((row) => [row.assetId, row]));
  return assetIds.map((id) => found.get(id) ?? null);
}
