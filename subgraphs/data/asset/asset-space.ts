import type { Queryer, Tx } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { ASSET } from "./asset.refusals.ts";
import type { AssetLimits } from "./asset-limits.ts";

/** What a team's assets take. */
export interface StorageUse {
  storedBytes: number;
  /** Of uploads and imports that are under way. */
  stagedBytes: number;
}

export async function storageUse(q: Queryer, tenantId: string, now: Date): Promise<StorageUse> {
  const [row] = await q.sql<{ stored: string; staged: string }>(
    `select (select coalesce(sum(stored_bytes), 0) from data.asset where tenant_id = $1 and state <> 'deleted')::text as stored,
            (select coalesce(sum(staged_bytes), 0) from data.asset_upload where tenant_id = $1 and seen_at > $2)::text as staged`,
    [tenantId, heardSince(now)],
  );
  return { storedBytes: Number(row!.stored), stagedBytes: Number(row!.staged) };
}

/** Uploads and imports of one team begin and end one after the other, so that counts and sums are true while they are looked at. */
export async function lockTeam(tx: Tx, tenantId: string): Promise<void> {
  await tx.sql("select pg_advisory_xact_lock(hashtextextended('data.asset/' || $1, 0))", [tenantId]);
}

/** Refuses when the team has as many uploads, imports and exports under way as it may. Under the team's lock. */
export async function requirePlace(tx: Tx, tenantId: string, limits: AssetLimits, now: Date): Promise<void> {
  const [row] = await tx.sql<{ live: bigint }>(
    `select (select count(*) from data.asset where tenant_id = $1 and state = 'importing')
          + (select count(*) from data.asset_upload u where u.tenant_id = $1 and u.seen_at > $2
               and not exists (select 1 from data.asset a where a.id = u.id)) as live`,
    [tenantId, heardSince(now)],
  );
  if (row!.live >= BigInt(limits.importsAtOnce)) throw new Refused(ASSET.imports_in_progress);
}

/** Refuses when the team's storage cannot take so many more bytes. */
export async function requireSpace(
  q: Queryer,
  tenantId: string,
  moreBytes: number,
  limits: AssetLimits,
  now: Date,
): Promise<void> {
  const { storedBytes, stagedBytes } = await storageUse(q, tenantId, now);
  if (storedBytes + stagedBytes + moreBytes > limits.quotaBytes)
    throw new Refused(ASSET.storage_quota_exceeded, {
      message: `The team's assets may take ${limits.quotaBytes} bytes; ${storedBytes} are stored and ${stagedBytes} are on their way.`,
      extra: { storage_quota_bytes: limits.quotaBytes, stored_bytes: storedBytes, staged_bytes: stagedBytes },
    });
}

function heardSince(now: Date): Date {
  return new Date(now.getTime() - LIMITS.assetUploadSilenceMs);
}
