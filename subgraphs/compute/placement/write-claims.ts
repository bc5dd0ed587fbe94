import type { Tx } from "../../../infra/db/database.ts";
import { appendJobsFrom, OUTBOX_TOPIC } from "../../../infra/db/outbox.ts";
import { toUsd } from "../../../infra/kernel/micros.ts";
import { GRANTED_COLUMNS, type GrantedRow, grantedRow, Rejections, TERM_COLUMNS } from "./granted-row.ts";
import { manyOrOne, manyRows, oneRow } from "./json-rows.ts";
import type { PlacementDeps } from "./placement-deps.ts";
import type { ClaimedOrder, Granted } from "./seeker.ts";
import type { WorkloadSteps } from "./workload-steps.ts";

/** Writes placements and attempts of a batch, orders their stages and says so in events. */
export async function writeGrants(
  tx: Tx,
  deps: PlacementDeps,
  granted: readonly Granted[],
  steps: WorkloadSteps,
  now: Date,
): Promise<ClaimedOrder[]> {
  if (granted.length === 0) return [];
  const rejections = new Rejections();
  const rows = granted.map((grant) => grantedRow(deps, grant, rejections, now));
  for (const [i, row] of rows.entries()) announce(steps, granted[i]!, row);
  const source = manyOrOne(rows);
  const reused = rows.filter((row) => row.reused);
  // Asked for together, they leave in one write and in this order.
  await Promise.all([
    reused.length > 0 && tx.sql(REUSE, [JSON.stringify(reused), rejections.json()]),
    supersede(tx, rows),
    tx.sql(source.many ? GRANT_MANY : GRANT_ONE, [source.json, rejections.json(), now]),
  ]);
  tx.wake(OUTBOX_TOPIC);
  return rows.map((row) => ({
    order: {
      orderId: row.order_id,
      sku: row.sku,
      region: row.region,
      cpuMillis: row.cpu_millis,
      memoryMb: row.memory_mb,
      gpuCount: row.gpus,
    },
    fence: row.fence,
    supplier: row.supplier,
    tenantId: row.tenant_id,
  }));
}

/** Columns of a placement that every order of it writes. */
const ORDERED = ["fence", "order_id", ...TERM_COLUMNS];
/** Columns that an attempt shares with what was granted. */
const ATTEMPTED = `placement_id, tenant_id, workload_id, generation, fence, supplier, offer_id, sku, region, capacity_id,
  cpu_millis, memory_mb, gpus, token_hash, token_expires_at, boot_deadline_at, next_check_at`;

/**
 * Everything that a grant writes: `$1` rows, `$2` what was rejected, `$3` now. One statement, since most of what a short
 * one costs is its way to the database and back.
 */
const grantFrom = (source: string) => `with granted as materialized (select * from ${source} as r(${GRANTED_COLUMNS})),
  placements as (
    insert into compute.placement (id, tenant_id, workload_id, stage_run_id, stage_id, generation, ${ORDERED.join(", ")},
      state, rejected, attempts, provisioned_at, want, applied_seq, oom, log_bytes, log_truncated, log_tail_lost,
      log_complete, created_at)
    select placement_id, tenant_id, workload_id, stage_run_id, stage_id, generation, ${ORDERED.join(", ")},
      'provisioning', $2::jsonb -> rejected, attempt, $3::timestamptz, 'run', 0, false, 0, false, false,
      false, $3
    from granted where not reused),
  attempts as (
    insert into compute.attempt (id, number, state, fruitless_checks, created_at, ${ATTEMPTED})
    select order_id, attempt, 'launching', 0, $3, ${ATTEMPTED} from granted),
  jobs as (${appendJobsFrom("granted")})
  update compute.stage s
  set status = 'starting', generation = g.generation, fence = g.fence, last_tried_at = $3
  from granted g where s.id = g.stage_run_id`;

const GRANT_ONE = grantFrom(oneRow("$1"));
const GRANT_MANY = grantFrom(manyRows("$1"));

/**
 * Further orders of a generation that never ran take its row over; what the failed order left there is wiped. `$1` rows,
 * `$2` what was rejected.
 */
const REUSE = `update compute.placement p set ${ORDERED.map((column) => `${column} = r.${column}`).join(", ")},
    rejected = $2::jsonb -> r.rejected, attempts = r.attempt, applied_seq = 0, isolation = null,
    lease_expires_at = null, last_beat_at = null
  from ${manyRows("$1")} as r(${GRANTED_COLUMNS})
  where p.id = r.placement_id and p.state = 'provisioning'`;

/** Every earlier generation that nothing took over yet is taken over by the new one. */
async function supersede(tx: Tx, rows: readonly GrantedRow[]): Promise<void> {
  const later = rows.filter(({ reused, generation }) => !reused && generation > 1);
  if (later.length === 0) return;
  await tx.sql(
    `update compute.placement p set superseded_by = v.generation
     from unnest($1::text[], $2::int[]) as v(stage_run_id, generation)
     where p.stage_run_id = v.stage_run_id and p.generation < v.generation and p.superseded_by is null`,
    [later.map((row) => row.stage_run_id), later.map((row) => row.generation)],
  );
}

function announce(steps: WorkloadSteps, { stage, chosen: { offer }, heldMicros }: Granted, row: GrantedRow): void {
  const where = { stage_id: stage.stageId, generation: row.generation };
  steps.stopWaiting(stage);
  steps.move(stage, "reserve", {
    ...where,
    sku: row.sku,
    region: row.region,
    price_usd_hour: toUsd(offer.rateMicrosPerHour),
    hold_usd: toUsd(heldMicros),
  });
  const payload = {
    ...where,
    attempt: row.attempt,
    boot_deadline: row.boot_deadline_at.toISOString(),
    sku: row.sku,
    region: row.region,
    compute_class: row.compute_class,
    accelerator: row.accelerator,
    gpu_count: row.gpu_count,
    simulated: row.simulated,
    cpu_fallback: row.cpu_fallback,
    note: row.note,
  };
  const before = stage.workload.revision;
  steps.move(stage, "provision", payload);
  // A later stage or a recovery changes no status, but that an order went out is worth knowing all the same.
  if (stage.workload.revision === before) steps.record(stage, "workload.provisioning", payload);
}
