import type { Tx } from "../../../infra/db/database.ts";
import type { RunnerRecord } from "../../../infra/runner/protocol.ts";
import { applyLog } from "../log/log.commands.ts";
import type { Placement } from "../placement/placement.entity.ts";
import { topics } from "../topics.ts";
import { endGeneration } from "./end-generation.commands.ts";
import type { LifecycleDeps } from "./lifecycle-deps.ts";
import { boundsOf, lockSession } from "./locked-order.ts";
import {
  applyEgressDenied,
  applyExit,
  applyLogTruncated,
  applyOutput,
  applyOutputFailed,
  applyPhase,
  applyUnits,
  type RecordContext,
} from "./record-handlers.ts";
import type { Session, SessionRefusal } from "./session.ts";

/** How far the records of an order are applied; `gap` when the batch starts beyond the next number. */
export type Applied = { ackSeq: number } | { gap: number };

/**
 * Applies a batch of records in one transaction, in order, each number once. Records that were applied before are
 * skipped, so a replay changes nothing; a batch that leaves a gap is refused as a whole.
 */
export async function applyRecords(
  deps: LifecycleDeps,
  session: Session,
  records: readonly RunnerRecord[],
): Promise<Applied | SessionRefusal> {
  const now = deps.clock.now();
  return deps.db.command(async (tx) => {
    const found = await lockSession(tx, session);
    if ("refused" in found) return found;
    const fresh = records.filter((r) => r.seq > found.placement.appliedSeq);
    if (fresh.length === 0) return { ackSeq: found.placement.appliedSeq };
    for (const [i, record] of fresh.entries())
      if (record.seq !== found.placement.appliedSeq + 1 + i) return { gap: found.placement.appliedSeq + 1 };
    const ackSeq = fresh.at(-1)!.seq;
    await heard(tx, found.placement, { ackSeq, now, leaseMs: deps.settings.leaseMs });
    const context: RecordContext = { ...found, tx, now, settings: deps.settings };
    for (const run of runsOfOneType(upToEnd(fresh))) await applyRun(context, run);
    tx.wake(topics.workload(session.workloadId));
    return { ackSeq };
  }, boundsOf(session));
}

/**
 * Records prove their host alive as a heartbeat does. A host whose guest is over beats no more but may have much to
 * deliver yet: taken for lost meanwhile, a run that ended well would be run again.
 */
async function heard(
  tx: Tx,
  placement: Placement,
  { ackSeq, now, leaseMs }: { ackSeq: number; now: Date; leaseMs: number },
): Promise<void> {
  placement.appliedSeq = ackSeq;
  placement.lastBeatAt = now;
  placement.leaseExpiresAt = new Date(now.getTime() + leaseMs);
  await tx.sql(
    "update compute.placement set applied_seq = $2, last_beat_at = $3, lease_expires_at = $4 where id = $1",
    [placement.id, ackSeq, now, placement.leaseExpiresAt],
  );
}

/** Nothing follows the end of a generation; whatever a host says all the same is not heard. */
function upToEnd(records: readonly RunnerRecord[]): readonly RunnerRecord[] {
  const end = records.findIndex((record) => record.type === "end");
  return end < 0 ? records : records.slice(0, end + 1);
}

/** Neighbours of one type together, so that logs and units cost a statement for a batch, not for each. */
function runsOfOneType(records: readonly RunnerRecord[]): RunnerRecord[][] {
  const runs: RunnerRecord[][] = [];
  for (const record of records) {
    const last = runs.at(-1);
    if (last && last[0]!.type === record.type) last.push(record);
    else runs.push([record]);
  }
  return runs;
}

type OfType<T extends RunnerRecord["type"]> = Extract<RunnerRecord, { type: T }>;

async function applyRun(context: RecordContext, run: RunnerRecord[]): Promise<void> {
  switch (run[0]!.type) {
    case "log":
      return applyLog(context, run as OfType<"log">[]);
    case "unit":
      return applyUnits(context, run as OfType<"unit">[]);
    case "rl_event":
      return; // kept in the log; evidence is collected by the rl domain when it serves RL runs
    default:
      for (const record of run) await applyOne(context, record);
  }
}

async function applyOne(context: RecordContext, record: RunnerRecord): Promise<void> {
  switch (record.type) {
    case "phase":
      return applyPhase(context, record);
    case "log_truncated":
      return applyLogTruncated(context, record);
    case "egress_denied":
      return applyEgressDenied(context, record);
    case "output":
      return applyOutput(context, record);
    case "output_failed":
      return applyOutputFailed(context, record);
    case "exit":
      return applyExit(context, record);
    case "end":
      return endGeneration(context, record);
    default:
      throw new Error(`no handler for a single ${record.type} record`);
  }
}
