import type { Tx } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { ComputeSettings } from "../settings.ts";

/**
 * Holds a failed boot against its offer: nothing is placed on it for a while, twice as long after each further failure.
 * Failures of orders that were out when the quarantine began count as one. Returns the end of the quarantine; null for
 * an offer that is not known.
 */
export async function recordBootFailure(
  tx: Tx,
  offerId: string,
  settings: Pick<ComputeSettings, "offerQuarantineMs">,
  now: Date,
): Promise<Date | null> {
  const version = await nextVersion(tx, offerId);
  if (version === null) return null;
  const [offer] = await tx.sql<{ until: Date | null }>(
    `update compute.offer set version = $2,
       failures_in_row = case when quarantined_until > $3 then failures_in_row else failures_in_row + 1 end,
       quarantined_until = case when quarantined_until > $3 then quarantined_until
         else $3::timestamptz + make_interval(secs => least($5::float8, $4::float8 * power(2, least(failures_in_row, 20))) / 1000) end
     where id = $1 returning quarantined_until as until`,
    [offerId, version, now, settings.offerQuarantineMs, LIMITS.offerQuarantineMaxMs],
  );
  return offer?.until ?? null;
}

/** A boot that succeeded clears the offer's record. */
export async function recordBootSuccess(tx: Tx, offerId: string): Promise<void> {
  const failed = await tx.sql("select 1 from compute.offer where id = $1 and failures_in_row > 0", [offerId]);
  if (failed.length === 0) return;
  const version = await nextVersion(tx, offerId);
  await tx.sql("update compute.offer set failures_in_row = 0, quarantined_until = null, version = $2 where id = $1", [
    offerId,
    version,
  ]);
}

/** Locks the offer's supplier, so that versions rise in the order of commits. */
async function nextVersion(tx: Tx, offerId: string): Promise<number | null> {
  const [supplier] = await tx.sql<{ version: number }>(
    `update compute.supplier s set version = s.version + 1 from compute.offer o where o.id = $1 and s.id = o.supplier returning s.version`,
    [offerId],
  );
  return supplier?.version ?? null;
}
