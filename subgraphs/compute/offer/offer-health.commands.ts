import type { Tx } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { ComputeSettings } from "../settings.ts";

/**
 * Holds a failed boot against its offer: nothing is placed on it for a while, twice as long after each further failure.
 * Failures of orders that were out when the quarantine began count as one, so they have nothing to write, and many that
 * come together do not wait for each other at the supplier's row. Returns the end of the quarantine; null for an offer
 * that is not known.
 */
export async function recordBootFailure(
  tx: Tx,
  offerId: string,
  settings: Pick<ComputeSettings, "offerQuarantineMs">,
  now: Date,
): Promise<Date | null> {
  const [known] = await tx.sql<{ until: Date | null }>(
    "select quarantined_until as until from compute.offer where id = $1",
    [offerId],
  );
  if (!known || (known.until !== null && known.until > now)) return known?.until ?? null;
  const [offer] = await tx.sql<{ until: Date }>(QUARANTINE, [
    ...[offerId, now, settings.offerQuarantineMs, LIMITS.offerQuarantineMaxMs],
  ]);
  return offer?.until ?? null;
}

/** Locks the supplier's row first, so that versions rise in the order of commits. */
const NEXT_VERSION = `with next as (
    update compute.supplier s set version = s.version + 1 from compute.offer o where o.id = $1 and s.id = o.supplier
    returning s.version)`;

/** `$1` offer, `$2` now, `$3` and `$4` the shortest and the longest quarantine in milliseconds. */
const QUARANTINE = `${NEXT_VERSION}
  update compute.offer o set version = next.version,
    failures_in_row = case when quarantined_until > $2 then failures_in_row else failures_in_row + 1 end,
    quarantined_until = case when quarantined_until > $2 then quarantined_until
      else $2::timestamptz + make_interval(secs => least($4::float8, $3::float8 * power(2, least(failures_in_row, 20))) / 1000) end
  from next where o.id = $1 returning o.quarantined_until as until`;

/** A boot that succeeded clears the offer's record. */
export async function recordBootSuccess(tx: Tx, offerId: string): Promise<void> {
  const failed = await tx.sql("select 1 from compute.offer where id = $1 and failures_in_row > 0", [offerId]);
  if (failed.length === 0) return;
  await tx.sql(
    `${NEXT_VERSION}
     update compute.offer o set failures_in_row = 0, quarantined_until = null, version = next.version
     from next where o.id = $1`,
    [offerId],
  );
}
