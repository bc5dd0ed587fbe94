import type { Database, Queryer } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { isId, newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { Pool } from "./pool.entity.ts";
import { POOL } from "./pool.refusals.ts";

/** How a pool starts: measured only, nothing charged, and no work of it goes anywhere else. */
const NEW_POOL = {
  kind: "hosts",
  state: "active",
  waitPolicy: "never",
  burstApproval: "always",
  burstTimeoutBehaviour: "keep_waiting",
  predictEnabled: false,
  routeEnabled: false,
  sandboxCapable: false,
  waitAlpha: 0.1,
  waitingBudgetPct: 0,
  burstThresholdMicros: 0,
  platformRateMicros: 0,
  ownedCostMicrosPerHour: 0,
} as const;

/** Makes a pool. Names need not be unique, and sent twice this makes two pools. */
export function createPool(db: Database, actor: Actor, input: { name: string }, now: Date): Promise<Pool> {
  return db.command(async (tx) => {
    const name = requirePoolName(input.name);
    await tx.sql("select pg_advisory_xact_lock(hashtextextended('pools.pool/' || $1, 0))", [actor.tenantId]);
    const [row] = await tx.sql<{ pools: bigint }>("select count(*) as pools from pools.pool where tenant_id = $1", [
      actor.tenantId,
    ]);
    if (row!.pools >= BigInt(LIMITS.poolsPerTeam)) throw new Refused(POOL.pool_limit);
    const pool = tx.em.create(Pool, {
      ...NEW_POOL,
      id: newId("pool", now),
      tenantId: actor.tenantId,
      name,
      createdAt: now,
      updatedAt: now,
    });
    await tx.em.persist(pool).flush();
    return pool;
  });
}

/** Gives a pool another name; `not_found` for one that the team has not got. */
export function renamePool(db: Database, actor: Actor, input: { id: string; name: string }, now: Date): Promise<Pool> {
  return db.command(async (tx) => {
    const name = requirePoolName(input.name);
    const known = isId("pool", input.id);
    const pool =
      known && (await tx.row(Pool, "where t.tenant_id = $1 and t.id = $2 for update", [actor.tenantId, input.id]));
    if (!pool) throw new Refused(COMMON.not_found);
    await tx.sql("update pools.pool set name = $3, updated_at = $4 where tenant_id = $1 and id = $2", [
      actor.tenantId,
      input.id,
      name,
      now,
    ]);
    return Object.assign(pool, { name, updatedAt: now });
  });
}

/** The team's pools, newest first, before one. */
export function listPools(q: Queryer, tenantId: string, before: string | null, limit: number): Promise<Pool[]> {
  return q.rows(Pool, "where t.tenant_id = $1 and ($2::text is null or t.id < $2) order by t.id desc limit $3", [
    tenantId,
    before,
    limit,
  ]);
}

/** The team's pools of these ids, in the order asked for; null where there is none. */
export async function poolsById(q: Queryer, tenantId: string, ids: readonly string[]): Promise<(Pool | null)[]> {
  const rows = await q.rows(Pool, "where t.tenant_id = $1 and t.id = any($2)", [
    tenantId,
    ids.filter((id) => isId("pool", id)),
  ]);
  const found = new Map(rows.map((p) => [p.id, p]));
  return ids.map((id) => found.get(id) ?? null);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Trimmed; what is measured is the name as it was sent, because the contract's length counts all of it. */
function requirePoolName(name: string): string {
  const trimmed = name.trim();
  const fits = trimmed !== "" && Buffer.byteLength(name) <= LIMITS.poolNameBytes && trimmed.isWellFormed();
  if (!fits || CONTROL.test(trimmed)) throw new Refused(POOL.invalid_pool_name, { field: "/name" });
  return trimmed;
}
