import type { Tx } from "../../../infra/db/database.ts";
import { OUTBOX_TOPIC } from "../../../infra/db/outbox.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { toUsd } from "../../../infra/kernel/micros.ts";
import { superviseBoot } from "../jobs.ts";
import type { Match } from "../offer/match-offers.ts";
import { stageMachine } from "../stage/stage.machine.ts";
import { manyOrOne, manyRows, oneRow } from "./json-rows.ts";
import { hashToken, orderToken } from "./order-token.ts";
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
    tx.sql(source.many ? GRANT_MANY : GRANT_ONE, [source.json, rejections.json(), now, superviseBoot.name]),
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

/** A placement and its attempt, as `GRANTED_COLUMNS` name what they are made of. */
type GrantedRow = ReturnType<typeof grantedRow>;

function grantedRow(deps: PlacementDeps, granted: Granted, rejections: Rejections, now: Date) {
  const { stage, match, heldMicros } = granted;
  const { offer, need, cpuFallback } = granted.chosen;
  if (stageMachine.decide(stage.status, "order") !== "starting")
    throw new Error(`stage ${stage.stageRunId} is ${stage.status} and cannot be ordered`);
  const { placement } = stage;
  const reused = placement?.state === "provisioning";
  const orderId = newId("order", now);
  // A supplier that is known to be slow gets the time that it needs.
  const bootMs = Math.max(deps.settings.bootTimeoutMs, 3_000 * offer.expectedBootSeconds);
  return {
    /** The generation did not begin to run with an earlier order, and goes on with this one. */
    reused,
    placement_id: reused ? placement.id : newId("placement", now),
    order_id: orderId,
    job_id: newId("outbox", now),
    tenant_id: stage.tenantId,
    workload_id: stage.workload.id,
    stage_run_id: stage.stageRunId,
    stage_id: stage.stageId,
    generation: reused ? stage.generation : stage.generation + 1,
    fence: stage.fence + 1,
    attempt: reused ? placement.attempts + 1 : 1,
    supplier: offer.supplier,
    offer_id: offer.id,
    sku: offer.sku,
    region: offer.region,
    capacity_id: offer.capacityId,
    cpu_millis: need.cpuMillis,
    memory_mb: need.memoryMb,
    gpus: need.gpus,
    token_hash: hashToken(orderToken(deps.runnerKey, orderId)),
    token_expires_at: new Date(now.getTime() + Math.max(LIMITS.bootTokenTtlMs, bootMs)),
    boot_deadline_at: new Date(now.getTime() + bootMs),
    next_check_at: new Date(now.getTime() + LIMITS.launchTimeoutMs + LIMITS.attemptCheckMs),
    compute_class: offer.computeClass,
    accelerator: offer.accelerator,
    gpu_count: offer.gpuCount,
    device_memory_gb: offer.deviceMemoryGb,
    vcpus: need.cpuMillis / 1000,
    memory_gb: need.memoryMb / 1024,
    interruptible: offer.interruptible,
    simulated: offer.simulated,
    cpu_fallback: cpuFallback,
    note: offer.note,
    rate_micros_per_hour: offer.rateMicrosPerHour.toString(),
    fee_basis_points: deps.settings.feeBasisPoints,
    held_micros: heldMicros.toString(),
    candidates: match.ranked.length,
    /** Which of `rejections`. */
    rejected: rejections.placeOf(match),
  };
}

/** For `jsonb_to_record` and its kin: a member of each granted row. */
const GRANTED_COLUMNS = `reused bool, placement_id text, order_id text, job_id text, tenant_id text, workload_id text,
  stage_run_id text, stage_id text, generation int, fence int, attempt int, supplier text, offer_id text, sku text,
  region text, capacity_id text, cpu_millis int, memory_mb int, gpus int, token_hash text, token_expires_at timestamptz,
  boot_deadline_at timestamptz, next_check_at timestamptz, compute_class text, accelerator text, gpu_count int,
  device_memory_gb float8, vcpus float8, memory_gb float8, interruptible bool, simulated bool, cpu_fallback bool,
  note text, rate_micros_per_hour bigint, fee_basis_points int, held_micros bigint, candidates int, rejected int`;

/**
 * Everything that a grant writes: `$1` rows, `$2` what was rejected, `$3` now, `$4` name of the job that supervises boots.
 * One statement, since most of what a short one costs is its way to the database and back.
 */
const grantFrom = (source: string) => `with granted as materialized (select * from ${source} as r(${GRANTED_COLUMNS})),
  placements as (
    insert into compute.placement (id, tenant_id, workload_id, stage_run_id, stage_id, generation, fence, state, order_id,
      offer_id, sku, region, compute_class, accelerator, gpu_count, device_memory_gb, vcpus, memory_gb, interruptible,
      simulated, cpu_fallback, note, rate_micros_per_hour, fee_basis_points, held_micros, candidates, rejected, attempts,
      provisioned_at, want, applied_seq, oom, log_bytes, log_truncated, log_tail_lost, log_complete, created_at)
    select placement_id, tenant_id, workload_id, stage_run_id, stage_id, generation, fence, 'provisioning', order_id,
      offer_id, sku, region, compute_class, accelerator, gpu_count, device_memory_gb, vcpus, memory_gb, interruptible,
      simulated, cpu_fallback, note, rate_micros_per_hour, fee_basis_points, held_micros, candidates,
      $2::jsonb -> rejected, attempt, $3::timestamptz, 'run', 0, false, 0, false, false, false, $3
    from granted where not reused),
  attempts as (
    insert into compute.attempt (id, placement_id, tenant_id, workload_id, number, generation, fence, state, supplier,
      offer_id, sku, region, capacity_id, cpu_millis, memory_mb, gpus, token_hash, token_expires_at, boot_deadline_at,
      next_check_at, fruitless_checks, created_at)
    select order_id, placement_id, tenant_id, workload_id, attempt, generation, fence, 'launching', supplier,
      offer_id, sku, region, capacity_id, cpu_millis, memory_mb, gpus, token_hash, token_expires_at, boot_deadline_at,
      next_check_at, 0, $3
    from granted),
  jobs as (
    insert into infra.outbox (id, job, payload, due_at, created_at)
    select job_id, $4, jsonb_build_object('orderId', order_id), boot_deadline_at, $3 from granted)
  update compute.stage s
  set status = 'starting', generation = g.generation, fence = g.fence, last_tried_at = $3
  from granted g where s.id = g.stage_run_id`;

const GRANT_ONE = grantFrom(oneRow("$1"));
const GRANT_MANY = grantFrom(manyRows("$1"));

/** What matches passed over, each text once: the stages of a batch are often alike, and the texts are long. */
class Rejections {
  readonly #places = new Map<Match, number>();

  placeOf(match: Match): number {
    const place = this.#places.get(match) ?? this.#places.size;
    this.#places.set(match, place);
    return place;
  }

  /** A JSON array of them. */
  json(): string {
    return `[${[...this.#places.keys()].map(rejectedJson).join()}]`;
  }
}

/** A match is kept for as long as it is true, and nobody changes it. */
const rejectedTexts = new WeakMap<Match, string>();

function rejectedJson(match: Match): string {
  let text = rejectedTexts.get(match);
  if (text === undefined) {
    text = JSON.stringify(match.rejected);
    rejectedTexts.set(match, text);
  }
  return text;
}

/**
 * Further orders of a generation that never ran take its row over; what the failed order left there is wiped. `$1` rows,
 * `$2` what was rejected.
 */
const REUSE = `update compute.placement p set fence = r.fence, order_id = r.order_id, offer_id = r.offer_id, sku = r.sku,
    region = r.region, compute_class = r.compute_class, accelerator = r.accelerator, gpu_count = r.gpu_count,
    device_memory_gb = r.device_memory_gb, vcpus = r.vcpus, memory_gb = r.memory_gb, interruptible = r.interruptible,
    simulated = r.simulated, cpu_fallback = r.cpu_fallback, note = r.note,
    rate_micros_per_hour = r.rate_micros_per_hour, fee_basis_points = r.fee_basis_points, held_micros = r.held_micros,
    candidates = r.candidates, rejected = $2::jsonb -> r.rejected, attempts = r.attempt, applied_seq = 0,
    isolation = null, lease_expires_at = null, last_beat_at = null
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
