import type { Queryer, Tx } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { Micros } from "../../../infra/kernel/micros.ts";
import type { StageSpec } from "../stage/stage.entity.ts";
import type { StageState } from "../stage/stage.machine.ts";
import type { WorkloadState } from "../workload/workload.machine.ts";
import type { PlacementState } from "./placement.machine.ts";

/** A stage that wants capacity, locked together with its workload and its latest placement. */
export interface DueStage {
  stageRunId: string;
  stageId: string;
  tenantId: string;
  status: StageState;
  spec: StageSpec;
  generation: number;
  fence: number;
  failedOfferIds: string[];
  workload: DueWorkload;
  /** The placement of the latest generation; null before the first. */
  placement: { id: string; state: PlacementState; attempts: number } | null;
}

export interface DueWorkload {
  id: string;
  status: WorkloadState;
  revision: number;
  eventSeq: number;
  waitingReason: string | null;
  waitingSince: Date | null;
  updatedAt: Date;
  /** What its own limit leaves; null for no limit. */
  budgetLeftMicros: Micros | null;
  heldMicros: Micros;
  cancelRequested: boolean;
}

export interface BatchRequest {
  /** Most stages. */
  limit: number;
  /** The tenant that was served last: the round goes on behind it. */
  afterTenant: string;
  /** Takes stages whose next try is due by then. */
  dueBy: Date;
  /** Leaves out stages that somebody looked at since; null for none. */
  untriedSince: Date | null;
  now: Date;
}

/**
 * Takes stages that wait for capacity, round robin: the tenants behind the last one served each get an equal share of
 * the batch, their oldest stages first, so nobody waits behind another team's thousands. What another process holds is
 * skipped; its latest placement is waited for, unless `passOver` says otherwise. Bounded by `limit` index look-ups.
 */
export async function takeFairBatch(tx: Tx, request: BatchRequest, { passOver = false } = {}): Promise<DueStage[]> {
  const { dueBy, untriedSince, afterTenant, limit, now } = request;
  const rows = await tx.sql<Row>(TAKE, [dueBy, untriedSince, afterTenant, limit, now]);
  const taken = rows.slice(0, limit);
  const placements = await lockPlacements(tx, taken, passOver);
  const free = passOver ? await withoutLockedPlacements(tx, taken, placements, now) : taken;
  return free.map((row) => dueStage(row, placements.get(row.stage_run_id) ?? null));
}

/**
 * The latest generations of locked stages. A statement of its own: what is joined to a row that somebody wrote meanwhile
 * is as old as the statement, while the row itself is read again when it is locked.
 */
async function lockPlacements(
  tx: Tx,
  stages: readonly Row[],
  passOver: boolean,
): Promise<Map<string, DueStage["placement"]>> {
  const placed = stages.filter((s) => s.generation > 0);
  if (placed.length === 0) return new Map();
  const rows = await tx.sql<{ stage_run_id: string; id: string; state: PlacementState; attempts: number }>(
    `select p.stage_run_id, p.id, p.state, p.attempts
     from unnest($1::text[], $2::int[]) as v(stage_run_id, generation)
     join compute.placement p on p.stage_run_id = v.stage_run_id and p.generation = v.generation
     order by p.id for update of p ${passOver ? "skip locked" : ""}`,
    [placed.map((s) => s.stage_run_id), placed.map((s) => s.generation)],
  );
  return new Map(rows.map(({ stage_run_id, id, state, attempts }) => [stage_run_id, { id, state, attempts }]));
}

/** Puts off those of which somebody holds the latest generation, which only a session by hand does, and returns the rest. */
async function withoutLockedPlacements(
  tx: Tx,
  stages: readonly Row[],
  locked: ReadonlyMap<string, unknown>,
  now: Date,
): Promise<readonly Row[]> {
  const passed = stages.filter((s) => s.generation > 0 && !locked.has(s.stage_run_id));
  const held = await tx.sql<{ stage_run_id: string }>(
    `select p.stage_run_id from unnest($1::text[], $2::int[]) as v(stage_run_id, generation)
     join compute.placement p on p.stage_run_id = v.stage_run_id and p.generation = v.generation`,
    [passed.map((s) => s.stage_run_id), passed.map((s) => s.generation)],
  );
  const ids = held.map((h) => h.stage_run_id);
  await putOff(tx, ids, LIMITS.heldStageMs, now);
  return stages.filter((s) => !ids.includes(s.stage_run_id));
}

/**
 * Stages that could not be dealt with because somebody holds what they need: they keep what reason they had for waiting,
 * and are due again in a moment.
 */
export async function putOff(
  q: Pick<Queryer, "sql">,
  stageRunIds: readonly string[],
  forMs: number,
  now: Date,
): Promise<void> {
  if (stageRunIds.length === 0) return;
  await q.sql(
    "update compute.stage set next_try_at = $2, last_tried_at = $3 where id = any($1) and status = 'placing'",
    [stageRunIds, new Date(now.getTime() + forMs), now],
  );
}

interface Row {
  stage_run_id: string;
  stage_id: string;
  tenant_id: string;
  status: StageState;
  spec: StageSpec;
  generation: number;
  fence: number;
  failed_offer_ids: string[];
  workload_id: string;
  workload_status: WorkloadState;
  revision: number;
  event_seq: number;
  waiting_reason: string | null;
  waiting_since: Date | null;
  updated_at: Date;
  budget_left: Micros | null;
  held_micros: Micros;
  cancel_requested: boolean;
}

/** Waiting and due: `$1` dueBy, `$2` untriedSince. */
const DUE = `s.status = 'placing' and s.next_try_at <= $1 and ($2::timestamptz is null or s.last_tried_at is null or s.last_tried_at < $2)`;

/** The first tenant with a due stage in a range, and whether the round has passed the end of the tenants. */
const firstTenant = (range: string, wrapped: string) =>
  `(select s.tenant_id, ${wrapped} as wrapped from compute.stage s where ${DUE} and ${range} order by s.tenant_id limit 1)`;

/**
 * `$3` afterTenant, `$4` limit, `$5` now. The round goes up from `$3`, then from the beginning up to `$3`. A tenant's stages
 * come in the order of the index `stage_in_order`: any other has more of them read and sorted than are taken.
 */
const TAKE = `with recursive round(tenant_id, wrapped, n) as (
    select first.*, 1 from (
      ${firstTenant("s.tenant_id > $3", "false")} union all ${firstTenant("s.tenant_id <= $3", "true")} order by wrapped limit 1
    ) first
    union all
    select next.*, r.n + 1 from round r cross join lateral (
      ${firstTenant("s.tenant_id > r.tenant_id and (not r.wrapped or s.tenant_id <= $3)", "r.wrapped")}
      union all ${firstTenant("not r.wrapped and s.tenant_id <= $3", "true")} order by wrapped limit 1
    ) next where r.n < $4
  )
  select d.* from round r cross join lateral (
    select s.id as stage_run_id, s.stage_id, s.tenant_id, s.status, s.spec, s.generation, s.fence, s.failed_offer_ids, s.created_at,
      w.id as workload_id, w.status as workload_status, w.revision, w.event_seq, w.waiting_reason, w.waiting_since, w.updated_at,
      w.max_cost_micros - w.spend_micros - w.held_micros as budget_left, w.held_micros,
      w.cancel_requested_at is not null as cancel_requested
    from compute.stage s
    join compute.workload w on w.id = s.workload_id and w.status not in ('completed', 'failed', 'cancelled')
      and (w.complete_by is null or w.complete_by > $5)
    where ${DUE} and s.tenant_id = r.tenant_id
    order by s.created_at, s.next_try_at, s.id
    limit (select ceil($4::float8 / count(*))::int from round)
    for update of s, w skip locked
  ) d order by r.n, d.created_at, d.stage_run_id`;

function dueStage(r: Row, placement: DueStage["placement"]): DueStage {
  return {
    stageRunId: r.stage_run_id,
    stageId: r.stage_id,
    tenantId: r.tenant_id,
    status: r.status,
    spec: r.spec,
    generation: r.generation,
    fence: r.fence,
    failedOfferIds: r.failed_offer_ids,
    workload: {
      id: r.workload_id,
      status: r.workload_status,
      revision: r.revision,
      eventSeq: r.event_seq,
      waitingReason: r.waiting_reason,
      waitingSince: r.waiting_since,
      updatedAt: r.updated_at,
      budgetLeftMicros: r.budget_left,
      heldMicros: r.held_micros,
      cancelRequested: r.cancel_requested,
    },
    placement,
  };
}
