import type { Queryer } from "../../../infra/db/database.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { Secret } from "./secret.entity.ts";
import { isSecretName } from "./secret-value.ts";

/**
 * The secret in use that a body refers to by its name or its `sec_` id; null when the team has none. A name comes first:
 * a name may look like an id.
 */
export async function findLiveSecret(q: Queryer, tenantId: string, nameOrId: string): Promise<Secret | null> {
  if (!isSecretName(nameOrId) && !isId("secret", nameOrId)) return null; // not every text may be asked of the database
  return q.row(
    Secret,
    "where t.tenant_id = $1 and (t.name = $2 or t.id = $2) and t.retired_at is null order by t.name = $2 desc limit 1",
    [tenantId, nameOrId],
  );
}
