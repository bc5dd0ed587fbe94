import type { Tx } from "../../../infra/db/database.ts";
import { enqueueAll } from "../../../infra/db/outbox.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { toUsd } from "../../../infra/kernel/micros.ts";
import { superviseBoot } from "../jobs.ts";
import { stageMachine } from "../stage/stage.machine.ts";
import type { DueStage } from "./fair-batch.ts";
import { insertRows } from "./insert-rows.ts";
import { hashToken, orderToken } from "./order-token.ts";
import { Attempt, Placement } from "./placement.entity.ts";
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
  const writes = granted.map((g) => rowsOf(deps, g, now));
  const rows = { placements: writes.filter((w) => !w.reused), reused: writes.filter((w) => w.reused) };
  const boots = writes.map(({ attempt: { id, bootDeadlineAt } }) => ({
    payload: { orderId: id },
    dueAt: bootDeadlineAt,
  }));
  for (const [i, { placement, attempt }] of writes.entries()) announce(steps, granted[i]!, placement, attempt);
  // Asked for together, they leave in one write and in this order.
  await Promise.all([
    insertRows(
      tx,
      Placement,
      rows.placements.map((w) => w.placement),
    ),
    ...rows.reused.map((w) => reuse(tx, w.placement)),
    supersede(tx, writes),
    insertRows(
      tx,
      Attempt,
      writes.map((w) => w.attempt),
    ),
    orderStages(tx, writes, now),
    enqueueAll(tx, superviseBoot, boots, now),
  ]);
  return writes.map(({ attempt }) => ({
    order: {
      orderId: attempt.id,
      sku: attempt.sku,
      region: attempt.region,
      cpuMillis: attempt.cpuMillis,
      memoryMb: attempt.memoryMb,
      gpuCount: attempt.gpus,
    },
    fence: attempt.fence,
    supplier: attempt.supplier,
  }));
}

type NewAttempt = ReturnType<typeof attemptRow>;
type NewPlacement = ReturnType<typeof placementRow>;
interface Rows {
  placement: NewPlacement;
  attempt: NewAttempt;
  stage: DueStage;
  /** The generation did not begin to run with an earlier order, and goes on with this one. */
  reused: boolean;
}

function rowsOf(deps: PlacementDeps, granted: Granted, now: Date): Rows {
  const { stage } = granted;
  const reused = stage.placement?.state === "provisioning";
  const placementId = reused ? stage.placement!.id : newId("placement", now);
  const number = reused ? stage.placement!.attempts + 1 : 1;
  const generation = reused ? stage.generation : stage.generation + 1;
  const attempt = attemptRow(deps, granted, { placementId, number, generation }, now);
  return { placement: placementRow(deps, granted, attempt, now), attempt, stage, reused };
}

function attemptRow(
  deps: PlacementDeps,
  { stage, chosen: { offer, need } }: Granted,
  place: { placementId: string; number: number; generation: number },
  now: Date,
) {
  const id = newId("order", now);
  // A supplier that is known to be slow gets the time that it needs.
  const bootMs = Math.max(deps.settings.bootTimeoutMs, 3_000 * offer.expectedBootSeconds);
  return {
    id,
    ...place,
    tenantId: stage.tenantId,
    workloadId: stage.workload.id,
    fence: stage.fence + 1,
    state: "launching" as const,
    supplier: offer.supplier,
    offerId: offer.id,
    sku: offer.sku,
    region: offer.region,
    capacityId: offer.capacityId,
    ...need,
    tokenHash: hashToken(orderToken(deps.runnerKey, id)),
    tokenExpiresAt: new Date(now.getTime() + Math.max(LIMITS.bootTokenTtlMs, bootMs)),
    bootDeadlineAt: new Date(now.getTime() + bootMs),
    nextCheckAt: new Date(now.getTime() + LIMITS.launchTimeoutMs + LIMITS.attemptCheckMs),
    fruitlessChecks: 0,
    createdAt: now,
  };
}

function placementRow(
  deps: PlacementDeps,
  { stage, match, chosen: { offer, need, cpuFallback }, heldMicros }: Granted,
  attempt: NewAttempt,
  now: Date,
) {
  return {
    id: attempt.placementId,
    tenantId: stage.tenantId,
    workloadId: stage.workload.id,
    stageRunId: stage.stageRunId,
    stageId: stage.stageId,
    generation: attempt.generation,
    fence: attempt.fence,
    state: "provisioning" as const,
    orderId: attempt.id,
    offerId: offer.id,
    sku: offer.sku,
    region: offer.region,
    computeClass: offer.computeClass,
    accelerator: offer.accelerator,
    gpuCount: offer.gpuCount,
    deviceMemoryGb: offer.deviceMemoryGb,
    vcpus: need.cpuMillis / 1000,
    memoryGb: need.memoryMb / 1024,
    interruptible: offer.interruptible,
    simulated: offer.simulated,
    cpuFallback,
    note: offer.note,
    rateMicrosPerHour: offer.rateMicrosPerHour,
    feeBasisPoints: deps.settings.feeBasisPoints,
    heldMicros,
    candidates: match.ranked.length,
    rejected: match.rejected,
    attempts: attempt.number,
    provisionedAt: now,
    want: "run" as const,
    appliedSeq: 0,
    oom: false,
    logBytes: 0,
    logTruncated: false,
    logTailLost: false,
    logComplete: false,
    createdAt: now,
  };
}

/** Further orders of a generation that never ran take its row over; what the failed order left there is wiped. */
async function reuse(tx: Tx, p: NewPlacement): Promise<void> {
  await tx.sql(
    `update compute.placement set fence = $2, order_id = $3, offer_id = $4, sku = $5, region = $6, compute_class = $7,
       accelerator = $8, gpu_count = $9, device_memory_gb = $10, vcpus = $11, memory_gb = $12, interruptible = $13,
       simulated = $14, cpu_fallback = $15, note = $16, rate_micros_per_hour = $17, fee_basis_points = $18,
       held_micros = $19, candidates = $20, rejected = $21, attempts = $22, applied_seq = 0, isolation = null,
       lease_expires_at = null, last_beat_at = null
     where id = $1 and state = 'provisioning'`,
    [
      p.id,
      p.fence,
      p.orderId,
      p.offerId,
      p.sku,
      p.region,
      p.computeClass,
      p.accelerator,
      p.gpuCount,
      p.deviceMemoryGb,
      p.vcpus,
      p.memoryGb,
      p.interruptible,
      p.simulated,
      p.cpuFallback,
      p.note,
      p.rateMicrosPerHour,
      p.feeBasisPoints,
      p.heldMicros,
      p.candidates,
      JSON.stringify(p.rejected),
      p.attempts,
    ],
  );
}

/** Every earlier generation that nothing took over yet is taken over by the new one. */
async function supersede(tx: Tx, writes: readonly Rows[]): Promise<void> {
  const later = writes.filter(({ reused, placement }) => !reused && placement.generation > 1);
  if (later.length === 0) return;
  await tx.sql(
    `update compute.placement p set superseded_by = v.generation
     from unnest($1::text[], $2::int[]) as v(stage_run_id, generation)
     where p.stage_run_id = v.stage_run_id and p.generation < v.generation and p.superseded_by is null`,
    [later.map(({ placement }) => placement.stageRunId), later.map(({ placement }) => placement.generation)],
  );
}

async function orderStages(tx: Tx, writes: readonly Rows[], now: Date): Promise<void> {
  const ordered = writes.map(({ stage, attempt }) => {
    const next = stageMachine.decide(stage.status, "order");
    if (next !== "starting") throw new Error(`stage ${stage.stageRunId} is ${stage.status} and cannot be ordered`);
    return { id: stage.stageRunId, generation: attempt.generation, fence: attempt.fence };
  });
  await tx.sql(
    `update compute.stage s set status = 'starting', generation = v.generation, fence = v.fence, last_tried_at = $4
     from unnest($1::text[], $2::int[], $3::int[]) as v(id, generation, fence) where s.id = v.id`,
    [ordered.map((o) => o.id), ordered.map((o) => o.generation), ordered.map((o) => o.fence), now],
  );
}

function announce(steps: WorkloadSteps, { stage }: Granted, placement: NewPlacement, attempt: NewAttempt): void {
  const where = { stage_id: stage.stageId, generation: attempt.generation };
  steps.stopWaiting(stage);
  steps.move(stage, "reserve", {
    ...where,
    sku: placement.sku,
    region: placement.region,
    price_usd_hour: toUsd(placement.rateMicrosPerHour),
    hold_usd: toUsd(placement.heldMicros),
  });
  const payload = {
    ...where,
    attempt: attempt.number,
    boot_deadline: attempt.bootDeadlineAt.toISOString(),
    sku: placement.sku,
    region: placement.region,
    compute_class: placement.computeClass,
    accelerator: placement.accelerator,
    gpu_count: placement.gpuCount,
    simulated: placement.simulated,
    cpu_fallback: placement.cpuFallback,
    note: placement.note,
  };
  const before = stage.workload.revision;
  steps.move(stage, "provision", payload);
  // A later stage or a recovery changes no status, but that an order went out is worth knowing all the same.
  if (stage.workload.revision === before) steps.record(stage, "workload.provisioning", payload);
}
