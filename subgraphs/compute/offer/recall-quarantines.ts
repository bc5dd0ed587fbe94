import type { Database } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { ComputeSettings } from "../settings.ts";

/**
 * Ends quarantines that lie farther ahead than any could be written now: they are from before the wall clock was set
 * back, and their offers would be shunned until it has caught up. Returns how many ended.
 */
export async function recallQuarantines(
  db: Database,
  { offerQuarantineMs }: Pick<ComputeSettings, "offerQuarantineMs">,
  now: Date,
): Promise<number> {
  const values = [now, offerQuarantineMs, LIMITS.offerQuarantineMaxMs, LIMITS.clockSkewMs];
  const far = await db.sql<{ id: string; supplier: string }>(
    `select id, supplier from compute.offer o where ${FAR_AHEAD} order by supplier, id`,
    values,
  );
  let recalled = 0;
  for (const { id } of far) {
    const rows = await db.sql(
      `with next as (
         update compute.supplier s set version = s.version + 1 from compute.offer f where f.id = $5 and s.id = f.supplier
         returning s.version)
       update compute.offer o set version = next.version, quarantined_until = $1 from next
       where o.id = $5 and ${FAR_AHEAD} returning 1`,
      [...values, id],
    );
    recalled += rows.length;
  }
  return recalled;
}

/** `$1` now, `$2` and `$3` the shortest and the longest quarantine, `$4` how far clocks may differ, in milliseconds. */
const FAR_AHEAD = `o.quarantined_until > $1::timestamptz + make_interval(secs =>
  (least($3::float8, $2::float8 * power(2, least(greatest(o.failures_in_row, 1) - 1, 20))) + $4::float8) / 1000)`;
