import type { Database } from "../../infra/db/database.ts";
import { newId } from "../../infra/kernel/ids.ts";
import { hashToken, orderToken } from "../../subgraphs/compute/placement/order-token.ts";
import type { ComputeSettings } from "../../subgraphs/compute/settings.ts";
import type { StageSpec } from "../../subgraphs/compute/stage/stage.entity.ts";

export const TENANT = "team_fixture";
export const RUNNER_KEY = new Uint8Array(32).fill(7);

export const computeSettings: ComputeSettings = {
  publicUrl: "http://127.0.0.1:4000",
  intakeUrl: "http://127.0.0.1:4000/runner/v1",
  feeBasisPoints: 1000,
  firstWindowMs: 60_000,
  cpuFallback: true,
  workloadNetwork: "open",
  allowPrivateHosts: [],
  leaseMs: 90_000,
  heartbeatIntervalMs: 5_000,
  bootTimeoutMs: 60_000,
  offerQuarantineMs: 120_000,
  cancelGraceMs: 5_000,
  logCaptureBytes: 8 * 1024 * 1024,
  logCommittedBytes: 64 * 1024 * 1024,
  defaultCpuMillis: 100,
  defaultMemoryMb: 512,
  defaultDiskGb: 10,
  newTeamCreditMicros: 100_000_000n,
  concurrentRunsLimit: 100,
};

export const stageSpec: StageSpec = {
  image: "python:3.11-slim",
  command: ["true"],
  sourceAsset: null,
  inputs: [],
  outputs: null,
  computeClass: "accelerator",
  computeClassDefaulted: true,
  gpu: null,
  gpuCount: 1,
  deviceMemoryGb: 0,
  vcpus: 0,
  diskGb: 0,
  regions: [],
  placement: { kind: "any" },
  continuityMode: "checkpointed",
  resumeOnInterruption: true,
  checkpointPaths: ["state"],
  network: { mode: "open", hosts: [], allowPrivate: [] },
  secretEnv: {},
  needsIsolation: false,
};

/** A team with credits. */
export async function insertAccount(
  db: Database,
  now: Date,
  over: { balanceMicros?: bigint; monthlyCapMicros?: bigint } = {},
): Promise<void> {
  await db.sql(
    `insert into compute.account (id, balance_micros, held_micros, monthly_cap_micros, month_spend_micros, month_start, payment_method, concurrent_runs_limit, created_at, updated_at)
     values ($1, $2, 0, $3, 0, date_trunc('month', $4::timestamptz), true, 100, $4, $4)`,
    [TENANT, over.balanceMicros ?? 100_000_000n, over.monthlyCapMicros ?? null, now],
  );
}

/** An accepted workload with one stage that wants capacity. */
export async function insertWorkload(
  db: Database,
  now: Date,
  over: { spec?: Partial<StageSpec>; maxCostMicros?: bigint | null; completeBy?: Date | null } = {},
): Promise<{ workloadId: string; stageRunId: string }> {
  const workloadId = newId("workload", now);
  const stageRunId = newId("stageRun", now);
  await db.sql(
    `insert into compute.workload (id, tenant_id, key_id, name, status, revision, payload, max_cost_micros, complete_by, spend_micros, held_micros, event_seq, log_seq, created_at, updated_at)
     values ($1, $2, 'key_fixture', '', 'accepted', 1, '{}', $3, $4, 0, 0, 0, 0, $5, $5)`,
    [workloadId, TENANT, over.maxCostMicros ?? null, over.completeBy ?? null, now],
  );
  await db.sql(
    `insert into compute.stage (id, tenant_id, workload_id, stage_id, position, status, spec, continuity_mode, generation, fence, completed_units, total_units, next_try_at, failed_offer_ids, recoveries, created_at)
     values ($1, $2, $3, 'main', 0, 'placing', $4, 'checkpointed', 0, 0, 0, 0, $5, '{}', 0, $5)`,
    [stageRunId, TENANT, workloadId, JSON.stringify({ ...stageSpec, ...over.spec }), now],
  );
  return { workloadId, stageRunId };
}

export interface Placed {
  workloadId: string;
  stageRunId: string;
  placementId: string;
  orderId: string;
  token: string;
}

/** A workload whose order is out, with the first window held, as a claim leaves it. */
export async function insertPlaced(
  db: Database,
  now: Date,
  over: Parameters<typeof insertWorkload>[2] & { rateMicrosPerHour?: bigint; heldMicros?: bigint } = {},
): Promise<Placed> {
  const { workloadId, stageRunId } = await insertWorkload(db, now, over);
  const placementId = newId("placement", now);
  const orderId = newId("order", now);
  const token = orderToken(RUNNER_KEY, orderId);
  const held = over.heldMicros ?? 1834n;
  await db.sql("update compute.workload set status = 'provisioning', revision = 4, held_micros = $2 where id = $1", [
    workloadId,
    held,
  ]);
  await db.sql("update compute.account set held_micros = held_micros + $2 where id = $1", [TENANT, held]);
  await db.sql("update compute.stage set status = 'starting', generation = 1, fence = 1 where id = $1", [stageRunId]);
  await db.sql(
    `insert into compute.placement (id, tenant_id, workload_id, stage_run_id, stage_id, generation, fence, state, order_id, offer_id, sku, region,
       compute_class, gpu_count, device_memory_gb, vcpus, memory_gb, interruptible, simulated, cpu_fallback, note, rate_micros_per_hour,
       fee_basis_points, held_micros, candidates, rejected, attempts, provisioned_at, want, applied_seq, oom, log_bytes, log_truncated,
       log_tail_lost, log_complete, created_at)
     values ($1, $2, $3, $4, 'main', 1, 1, 'provisioning', $5, 'off_fixture', 'local-cpu', 'local', 'vm', 0, 0, 0.1, 0.5, false, false, true,
       null, $6, 1000, $7, 1, '{"counts":{},"examples":[]}', 1, $8, 'run', 0, false, 0, false, false, false, $8)`,
    [placementId, TENANT, workloadId, stageRunId, orderId, over.rateMicrosPerHour ?? 100_000n, held, now],
  );
  await db.sql(
    `insert into compute.attempt (id, placement_id, tenant_id, workload_id, number, generation, fence, state, supplier, offer_id, sku, region,
       capacity_id, cpu_millis, memory_mb, gpus, token_hash, token_expires_at, boot_deadline_at, created_at)
     values ($1, $2, $3, $4, 1, 1, 1, 'booting', 'local', 'off_fixture', 'local-cpu', 'local', 'local/fixture', 100, 512, 0, $5, $6, $6, $7)`,
    [orderId, placementId, TENANT, workloadId, hashToken(token), new Date(now.getTime() + 600_000), now],
  );
  return { workloadId, stageRunId, placementId, orderId, token };
}
