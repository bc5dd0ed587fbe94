import { enqueue } from "../../../infra/db/outbox.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import type { RunnerRecord } from "../../../infra/runner/protocol.ts";
import { placeStage } from "../jobs.ts";
import { Output } from "../output/output.entity.ts";
import { stageMachine } from "../stage/stage.machine.ts";
import { appendEvent } from "../workload/workload.transitions.ts";
import { type Verdict, verdictOf } from "./exit-truth.ts";
import { endPlacement, finishWorkload, loseGeneration } from "./finish.commands.ts";
import { couldHaveGoneOn } from "./funding.commands.ts";
import type { RecordContext } from "./record-handlers.ts";
import { type EarlyEnd, wantedEnd } from "./recovery.ts";

type EndRecord = Extract<RunnerRecord, { type: "end" }>;

/** The host has nothing of the guest any more: the generation's truth decides what becomes of its stage and workload. */
export async function endGeneration(context: RecordContext, record: EndRecord): Promise<void> {
  const { tx, placement, now } = context;
  await completeLog(context, record);
  const verdict = await verdictIn(context);
  if (verdict.verdict === "lost") {
    await loseGeneration(tx, {
      placementId: placement.id,
      trigger: verdict.trigger,
      ranMs: placement.ranMs ?? undefined,
      logWhole: endWasSeen(context),
      now,
    });
    return;
  }
  await endPlacement(tx, {
    placementId: placement.id,
    outcome: verdict.verdict,
    message: verdict.verdict === "failed" ? verdict.message : null,
    logWhole: true,
    now,
  });
  await endStage(context, verdict);
}

/** The exit's verdict; an end of funded time that more money would have prevented is the platform's fault. */
async function verdictIn(context: RecordContext): Promise<Verdict> {
  const { tx, placement, workload, settings, now } = context;
  if (placement.killedBy === "funding" && (await couldHaveGoneOn(tx, workload, placement, settings, now)))
    return { verdict: "lost", trigger: "platform_restart" };
  return verdictOf(
    {
      code: placement.oom && placement.signal === null ? null : codeOf(context),
      signal: placement.signal,
      oom: placement.oom,
      killedBy: placement.killedBy,
      startFailure: placement.startFailure,
    },
    placement.outputFailure,
  );
}

/**
 * No more log will come. The host's digest is kept where it is of what we have; bytes that never came are lost, unless
 * the log was cut at its limit before them.
 */
async function completeLog({ tx, placement }: RecordContext, record: EndRecord): Promise<void> {
  placement.logComplete = true;
  placement.logTailLost ||= record.logBytes > placement.logBytes && !placement.logTruncated;
  placement.logSha256 = record.logBytes === placement.logBytes ? record.logSha256 : null;
  await tx.sql(
    "update compute.placement set log_complete = true, log_tail_lost = $2, log_sha256 = $3, dropped_units = $4 where id = $1",
    [placement.id, placement.logTailLost, placement.logSha256, Math.min(record.droppedUnits, MOST_DROPPED_UNITS)],
  );
}

/** What the column holds; more is as bad. */
const MOST_DROPPED_UNITS = 2 ** 31 - 1;

/** A host that was killed tells in its next life what it had stored; bytes on their way to it went with the command. */
function endWasSeen({ placement: { exitCode, signal, startFailure } }: RecordContext): boolean {
  return exitCode !== null || signal !== null || startFailure !== null;
}

/** A signalled command has a code of 128 + n on the wire and none of its own. */
function codeOf({ placement }: RecordContext): number | null {
  return placement.signal === null ? placement.exitCode : null;
}

async function endStage(context: RecordContext, verdict: Exclude<Verdict, { verdict: "lost" }>): Promise<void> {
  const { tx, stage, placement, workload, now } = context;
  const event = ({ completed: "complete", failed: "fail", cancelled: "cancel" } as const)[verdict.verdict];
  const reason = verdict.verdict === "failed" ? verdict.reason : verdict.verdict === "cancelled" ? "cancelled" : null;
  const message =
    verdict.verdict === "failed" ? verdict.message : verdict.verdict === "cancelled" ? "Cancelled." : null;
  // A command that never got to run went straight from starting to its end.
  const next = stageMachine.decide(
    stage.status === "starting" && event === "complete" ? "running" : stage.status,
    event,
  );
  if (next !== "ignore" && next !== "refuse")
    await tx.sql(
      "update compute.stage set status = $2, reason = $3, exit_code = $4, signal = $5, ended_at = $6 where id = $1",
      [stage.id, next, reason, placement.exitCode, placement.signal, now],
    );
  const where = { stage_id: stage.stageId, generation: placement.generation };
  const truth = { exit_code: placement.exitCode, signal: placement.signal, reason };
  if (verdict.verdict !== "cancelled")
    await appendEvent(
      tx,
      workload.id,
      `workload.stage_${verdict.verdict}`,
      { ...where, units: stage.completedUnits, ...truth },
      now,
    );
  let early: EarlyEnd | null = null;
  if (verdict.verdict === "completed") {
    await commitFinalManifest(context);
    const next = await nextStage(context);
    if (next !== null) early = wantedEnd(workload, now);
    if (next !== null && !early) return startStage(context, next);
  }
  const truthOfAll = { event, reason, message, exitCode: placement.exitCode, signal: placement.signal };
  await finishWorkload(tx, { workloadId: workload.id, ...(early ?? truthOfAll), payload: where, now });
}

/** What the stage leaves behind, for readers of manifests: its outputs by name, hash and size. */
async function commitFinalManifest({ tx, workload, placement, settings, now }: RecordContext): Promise<void> {
  const outputs = await tx.rows(
    Output,
    "where t.workload_id = $1 and t.stage_id = $2 and t.generation = $3 order by t.name",
    [workload.id, placement.stageId, placement.generation],
  );
  const base = `${settings.publicUrl}/v1/workloads/${workload.id}/outputs`;
  const entries = outputs.map((o) => [
    o.name,
    {
      uri: `${base}/${o.name}?stage=${placement.stageId}`,
      sha256: o.sha256,
      bytes: o.bytes,
      media: o.media,
      is_tar: o.isTar,
    },
  ]);
  const manifest = {
    stage_id: placement.stageId,
    generation: placement.generation,
    sequence: 1,
    final: true,
    files: [],
    outputs: Object.fromEntries(entries) as Record<string, unknown>,
  };
  await tx.sql(
    `insert into compute.manifest (id, tenant_id, workload_id, stage_id, generation, sequence, final, manifest, created_at)
     values ($1, $2, $3, $4, $5, 1, true, $6, $7) on conflict (workload_id, stage_id, generation, sequence) do nothing`,
    [
      newId("manifest", now),
      workload.tenantId,
      workload.id,
      placement.stageId,
      placement.generation,
      JSON.stringify(manifest),
      now,
    ],
  );
}

/** Stages run one after another: the id of the one whose turn it is now; null after the last. */
async function nextStage({ tx, workload }: RecordContext): Promise<string | null> {
  const [next] = await tx.sql<{ id: string }>(
    "select id from compute.stage where workload_id = $1 and status = 'pending' order by position limit 1",
    [workload.id],
  );
  return next?.id ?? null;
}

/** It wants capacity now. */
async function startStage({ tx, now }: RecordContext, stageRunId: string): Promise<void> {
  await tx.sql("update compute.stage set status = 'placing', next_try_at = $2 where id = $1 and status = 'pending'", [
    stageRunId,
    now,
  ]);
  await enqueue(tx, placeStage, { stageRunId }, now);
}
