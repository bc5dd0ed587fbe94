import type { Database } from "../../../infra/db/database.ts";
import { sealContext } from "./seal-context.ts";
import { SecretVersion } from "./secret.entity.ts";
import type { SecretBox } from "./secret-box.ts";

/** Wraps up to `limit` versions with the current master key that an earlier one wrapped. Answers how many; zero means done. */
export function rewrapSecrets(db: Database, box: SecretBox, limit = 200): Promise<number> {
  return db.command(async (tx) => {
    const versions = await tx.rows(
      SecretVersion,
      "where t.master_key_id <> $1 order by t.secret_id, t.version limit $2 for update skip locked",
      [box.currentKeyId, limit],
    );
    for (const v of versions) {
      const { masterKeyId, wrappedKey } = box.rewrap(v, sealContext(v.tenantId, v.secretId, v.version));
      await tx.sql(
        "update data.secret_version set master_key_id = $3, wrapped_key = $4 where secret_id = $1 and version = $2",
        [v.secretId, v.version, masterKeyId, wrappedKey],
      );
    }
    return versions.length;
  });
}
