import type { Tx } from "../../../infra/db/database.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import type { RunnerRecord } from "../../../infra/runner/protocol.ts";
import { recordBootSuccess } from "../offer/offer-health.commands.ts";
import { holdResult } from "../output/result-object.commands.ts";
import { attemptMachine, placementMachine } from "../placement/placement.machine.ts";
import type { ComputeSettings } from "../settings.ts";
import { stageMachine } from "../stage/stage.machine.ts";
import { appendEvent, moveWorkload } from "../workload/workload.transitions.ts";
import { exitCodeOf } from "./exit-truth.ts";
import type { LockedOrder } from "./locked-order.ts";

/** Rows are locked; handlers keep `placement`, `stage` and `workload` in step with what they write. */
export interface RecordContext extends LockedOrder {
  tx: Tx;
  now: Date;
  settings: ComputeSettings;
}

type OfType<T extends RunnerRecord["type"]> = Extract<RunnerRecord, { type: T }>;

/** The host's clock is not ours: an instant of its own counts only between the order and now. */
function clamp(at: string, earliest: Date, latest: Date): Date {
  const ms = Date.parse(at);
  if (Number.isNaN(ms)) return latest;
  return new Date(Math.min(Math.max(ms, earliest.getTime()), latest.getTime()));
}

/** Staging began, or the command runs: from here on the time is charged. */
export async function applyPhase(context: RecordContext, record: OfType<"phase">): Promise<void> {
  const { tx, placement, stage, attempt, workload, now } = context;
  await tx.sql("update compute.placement set isolation = $2 where id = $1", [
    placement.id,
    JSON.stringify(record.isolation),
  ]);
  if (record.phase !== "running" || placementMachine.decide(placement.state, "run") !== "running") return;
  if (placement.ranMs !== null) return; // the command is over already
  placement.state = "running";
  placement.runningAt = clamp(record.at, placement.provisionedAt, now);
  await tx.sql("update compute.placement set state = 'running', running_at = $2 where id = $1", [
    placement.id,
    placement.runningAt,
  ]);
  if (attemptMachine.decide(attempt.state, "run") === "running")
    await tx.sql("update compute.attempt set state = 'running' where id = $1", [attempt.id]);
  await recordBootSuccess(tx, placement.offerId);
  if (stageMachine.decide(stage.status, "run") === "running") {
    stage.status = "running";
    await tx.sql("update compute.stage set status = 'running', started_at = coalesce(started_at, $2) where id = $1", [
      stage.id,
      placement.runningAt,
    ]);
  }
  const where = { stage_id: stage.stageId, generation: placement.generation };
  await moveWorkload(tx, workload.id, { event: "run", now, payload: { ...where, ...facts(context, record) } });
  await appendEvent(tx, workload.id, "workload.stage_started", where, now);
}

function facts({ placement, stage }: RecordContext, record: OfType<"phase">): Record<string, unknown> {
  return {
    sku: placement.sku,
    region: placement.region,
    compute_class: placement.computeClass,
    accelerator: placement.accelerator,
    gpu_count: placement.gpuCount,
    simulated: placement.simulated,
    cpu_fallback: placement.cpuFallback,
    note: record.note ?? placement.note,
    network: stage.spec.network.mode,
    isolation: record.isolation.level,
    isolation_limits: record.isolation.limits,
  };
}

/** Work units: one id counts once over all generations of a stage. */
export async function applyUnits(
  { tx, stage, workload, now }: RecordContext,
  records: OfType<"unit">[],
): Promise<void> {
  const inserted = await tx.sql(
    `insert into compute.unit_observation (workload_id, stage_id, unit_id, ms, created_at)
     select $1, $2, u.id, u.ms, $5 from unnest($3::text[], $4::float8[]) as u(id, ms) on conflict do nothing returning 1`,
    [workload.id, stage.stageId, records.map((r) => r.id), records.map((r) => r.ms), now],
  );
  if (inserted.length === 0) return;
  stage.completedUnits += inserted.length;
  await tx.sql("update compute.stage set completed_units = completed_units + $2 where id = $1", [
    stage.id,
    inserted.length,
  ]);
}

/** Far beyond any run; a longer time is no measurement, and its price would fit no column. */
const LONGEST_RUN_MS = 10 * 366 * 24 * 3_600_000;

/** Says once that the log ends here, whatever the command goes on to print. */
export async function applyLogTruncated(
  { tx, placement, workload, now }: RecordContext,
  record: { offset: number },
): Promise<void> {
  if (placement.logTruncated) return;
  placement.logTruncated = true;
  await tx.sql("update compute.placement set log_truncated = true where id = $1", [placement.id]);
  const payload = { stage_id: placement.stageId, generation: placement.generation, captured_bytes: record.offset };
  await appendEvent(tx, workload.id, "workload.log_truncated", payload, now);
}

export async function applyEgressDenied(
  { tx, placement, workload, now }: RecordContext,
  record: OfType<"egress_denied">,
): Promise<void> {
  const where = { stage_id: placement.stageId, generation: placement.generation };
  const payload = { hostname: record.hostname, count: record.count, ...where };
  await appendEvent(tx, workload.id, "workload.egress_denied", payload, now);
}

/** The bytes are in the object store already; the row makes them a result. */
export async function applyOutput(context: RecordContext, record: OfType<"output">): Promise<void> {
  const { tx, placement, workload, now } = context;
  if (!(await holdResult(tx, record.sha256)))
    return applyOutputFailed(context, { ...record, type: "output_failed", reason: "its bytes are kept no longer" });
  await tx.sql(
    `insert into compute.output (id, tenant_id, workload_id, stage_id, generation, name, sha256, bytes, media, is_tar, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) on conflict (workload_id, stage_id, generation, name) do nothing`,
    [
      newId("upload", now),
      workload.tenantId,
      workload.id,
      placement.stageId,
      placement.generation,
      record.name,
      record.sha256,
      record.bytes,
      record.media,
      record.isTar,
      now,
    ],
  );
}

export async function applyOutputFailed(
  { tx, placement }: RecordContext,
  record: OfType<"output_failed">,
): Promise<void> {
  placement.outputFailure ??= `The output ${record.name} could not be saved: ${record.reason}`;
  await tx.sql("update compute.placement set output_failure = $2 where id = $1", [
    placement.id,
    placement.outputFailure,
  ]);
}

/**
 * The command is over and no longer charged; its outputs follow, and `end` closes the generation. A command ends once,
 * and time is charged from `phase: running` on: a further exit, or the time of one that never ran, counts for nothing.
 */
export async function applyExit({ tx, placement, now }: RecordContext, record: OfType<"exit">): Promise<void> {
  if (placement.ranMs !== null) return;
  placement.exitCode = exitCodeOf(record);
  placement.signal = record.signal;
  placement.oom = record.oom || record.killedBy === "memory";
  placement.killedBy = record.killedBy;
  placement.ranMs = placement.runningAt ? Math.min(Math.round(record.ranMs), LONGEST_RUN_MS) : 0;
  placement.startFailure = record.startFailure;
  await tx.sql(
    `update compute.placement set exit_code = $2, signal = $3, oom = $4, killed_by = $5, ran_ms = $6, start_failure = $7, ended_at = $8,
       message = $9 where id = $1`,
    [
      placement.id,
      placement.exitCode,
      placement.signal,
      placement.oom,
      placement.killedBy,
      placement.ranMs,
      record.startFailure ? JSON.stringify(record.startFailure) : null,
      now,
      record.startFailure?.message ?? null,
    ],
  );
}
