import type { Database } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";

/**
 * Destroys the ciphertext of versions that were retired more than seven days ago and that nobody holds; at most `limit`
 * of them. Only a version in use can be pinned, so a retired one never gains a holder. Answers how many went.
 */
export async function destroyRetiredSecrets(db: Database, now: Date, limit = 500): Promise<number> {
  const gone = await db.sql(
    `delete from data.secret_version where ctid = any(array(
       select v.ctid from data.secret_version v
        where v.retired_at < $1
          and not exists (select 1 from data.secret_pin p where p.secret_id = v.secret_id and p.version = v.version)
        order by v.retired_at limit $2 for update skip locked))
     returning secret_id`,
    [new Date(now.getTime() - LIMITS.retiredSecretMs), limit],
  );
  return gone.length;
}
