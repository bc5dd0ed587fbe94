import type { Queryer } from "../../../infra/db/database.ts";
import { sealContext } from "./seal-context.ts";
import { SecretVersion } from "./secret.entity.ts";
import type { SecretBox } from "./secret-box.ts";

/**
 * The value of one version, whether in use or retired; null when it was destroyed, or sealed with a master key that is
 * not here. For handing on only: never to be logged, stored or answered.
 */
export async function openVersion(
  q: Queryer,
  box: SecretBox,
  { tenantId, secretId, version }: { tenantId: string; secretId: string; version: number },
): Promise<string | null> {
  const sealed = await q.row(SecretVersion, "where t.tenant_id = $1 and t.secret_id = $2 and t.version = $3", [
    tenantId,
    secretId,
    version,
  ]);
  if (!sealed || !box.has(sealed.masterKeyId)) return null;
  return box.open(sealed, sealContext(tenantId, secretId, version)).toString("utf8");
}
