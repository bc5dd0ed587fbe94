import type { Database, Tx } from "../../../infra/db/database.ts";
import { forJob } from "../../../infra/db/job-bounds.ts";
import type { JsonValue } from "../../../infra/kernel/json-value.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { appendAccountEvent } from "../account-event/append-account-event.ts";
import type { SecretVersionPin } from "../connection/open-database.ts";
import { StaleClaim } from "../stale-claim.ts";
import { SinkLoad } from "./load.entity.ts";
import { loadMachine } from "./load.machine.ts";

/** A load as the process has it that does it. */
export interface LoadClaim {
  loadId: string;
  tenantId: string;
  workloadId: string;
  stageId: string;
  generation: number;
  /** Of the output. */
  name: string;
  path: string;
  sha256: string;
  bytes: number;
  isTar: boolean;
  connectionId: string;
  pin: SecretVersionPin;
  table: string;
  /** Counts the processes that had it; writes of an earlier one come too late. */
  fence: number;
  /** When it fails whatever it is at. */
  deadlineAt: Date;
}

function leaseUntil(now: Date): Date {
  return new Date(now.getTime() + LIMITS.loadLeaseMs);
}

/** Takes up a load that waits; null when there is none, or its team has as many under way as it may: it goes on waiting. */
export async function claimLoad(db: Database, loadId: string, now: Date): Promise<LoadClaim | null> {
  const [found] = await db.sql<{ tenant_id: string }>("select tenant_id from data.sink_load where id = $1", [loadId]);
  if (!found) return null;
  return db.command(async (tx) => {
    const row = await tx.row(SinkLoad, "where t.id = $1 for update", [loadId]);
    if (!row || loadMachine.decide(row.state, "claimed") !== "loading") return null;
    if (await isBusy(tx, row.tenantId, now)) return null; // the end of one of those sends for it
    const fence = row.fence + 1;
    await tx.sql(
      `update data.sink_load set state = 'loading', fence = $3, attempts = attempts + 1, lease_until = $4, started_at = $5
        where tenant_id = $1 and id = $2`,
      [row.tenantId, loadId, fence, leaseUntil(now), now],
    );
    await appendAccountEvent(tx, { tenantId: row.tenantId, type: "load.loading", payload: loadFacts(row), now });
    return claimOf(row, fence, now);
  }, forJob(found.tenant_id));
}

async function isBusy(tx: Tx, tenantId: string, now: Date): Promise<boolean> {
  const busy = await tx.sql(
    "select 1 from data.sink_load where tenant_id = $1 and state = 'loading' and lease_until > $2 limit $3",
    [tenantId, now, LIMITS.loadsAtOnce],
  );
  return busy.length >= LIMITS.loadsAtOnce;
}

function claimOf(row: SinkLoad, fence: number, now: Date): LoadClaim {
  const { id, tenantId, workloadId, stageId, generation, name, path, sha256, bytes, isTar, connectionId } = row;
  return {
    ...{ loadId: id, tenantId, workloadId, stageId, generation, name, path, sha256, bytes, isTar, connectionId, fence },
    pin: { secretId: row.secretId, version: row.secretVersion },
    table: row.targetTable,
    deadlineAt: new Date(now.getTime() + LIMITS.loadMs),
  };
}

/** What every event of the account stream says of a load. */
export function loadFacts(row: SinkLoad): Record<string, JsonValue> {
  return {
    load_id: row.id,
    workload_id: row.workloadId,
    stage: row.stageId,
    generation: row.generation,
    name: row.name,
    connection_id: row.connectionId,
    table: row.targetTable,
  };
}

/** The load's row, locked until the transaction ends. Throws `StaleClaim` when it is not the process's own any more. */
export async function requireClaim(tx: Tx, claim: Pick<LoadClaim, "tenantId" | "loadId" | "fence">): Promise<SinkLoad> {
  const row = await tx.row(
    SinkLoad,
    "where t.tenant_id = $1 and t.id = $2 and t.fence = $3 and t.state = 'loading' for update",
    [claim.tenantId, claim.loadId, claim.fence],
  );
  if (!row) throw new StaleClaim("load");
  return row;
}

/** Says that the load's process is alive. Throws `StaleClaim` when another one has it. */
export function reportLoad(db: Database, claim: LoadClaim, now: Date): Promise<void> {
  return db.command(async (tx) => {
    await requireClaim(tx, claim);
    await tx.sql("update data.sink_load set lease_until = $3 where tenant_id = $1 and id = $2", [
      claim.tenantId,
      claim.loadId,
      leaseUntil(now),
    ]);
  }, forJob(claim.tenantId));
}

/** Whether a later generation of the same stage has been loaded: this one's rows would be older than those there. */
export async function isSuperseded(
  q: Pick<Tx, "sql">,
  { tenantId, workloadId, stageId, generation }: Pick<LoadClaim, "tenantId" | "workloadId" | "stageId" | "generation">,
): Promise<boolean> {
  const later = await q.sql(
    `select 1 from data.sink_load where tenant_id = $1 and workload_id = $2 and stage_id = $3 and generation > $4
        and state = 'loaded' limit 1`,
    [tenantId, workloadId, stageId, generation],
  );
  return later.length > 0;
}
