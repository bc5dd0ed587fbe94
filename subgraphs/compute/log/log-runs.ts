import type { Queryer } from "../../../infra/db/database.ts";
import {
  BatchedReads,
  inOrder,
  ONE_OF_THE_OWNED,
  type Owned,
  ownedName,
  ownedValues,
} from "../../../infra/live/batched-reads.ts";
import type { Placement } from "../placement/placement.entity.ts";
import { isTerminal, type WorkloadState } from "../workload/workload.machine.ts";
import type { LoggedPlacement } from "./log-source.ts";

/** One generation of a stage, as far as its log goes. */
export type LogRun = LoggedPlacement & Pick<Placement, "logTruncated" | "logTailLost">;

/** As of one moment. */
export interface LogRuns {
  /** No further generation will follow. */
  readonly over: boolean;
  /** In the order in which they ran. */
  readonly runs: readonly LogRun[];
}

/** What there is of a workload that was removed meanwhile. */
export const GONE: LogRuns = { over: true, runs: [] };

/** Whose log is asked for. */
export interface LogRunsAsk {
  tenantId: string;
  workloadId: string;
  /** Only this stage; every one unless given. */
  stageId: string | null;
  /** Only this generation; every one unless given. */
  generation: number | null;
}

/** The generations of a workload; null when the tenant has no such workload. */
export async function logRuns(db: Queryer, ask: LogRunsAsk): Promise<LogRuns | null> {
  const { tenantId, workloadId: id, stageId, generation } = ask;
  const all = await runsOfWorkloads.read(db, { tenantId, id });
  if (!all || (stageId === null && generation === null)) return all;
  const isAsked = (run: LogRun) =>
    (stageId === null || run.stageId === stageId) && (generation === null || run.generation === generation);
  return { over: all.over, runs: all.runs.filter(isAsked) };
}

/** Most looks find nothing new, and learn it with those at other workloads. */
const runsOfWorkloads = new BatchedReads<Owned, LogRuns | null>(ownedName, async (db, workloads) => {
  const rows = await db.sql<Row>(RUNS, ownedValues(workloads));
  const all = [...Map.groupBy(rows, (row) => row.workloadId).values()];
  const ordered = inOrder(workloads, all, ([first]) => ({ tenantId: first!.tenantId, id: first!.workloadId }));
  return ordered.map((found) => found && { over: isTerminal(found[0]!.status), runs: found.flatMap(runOf) });
});

/** A workload with one of its generations, or with none. */
type Row = { tenantId: string; workloadId: string; status: WorkloadState } & (
  | { id: null }
  | (Omit<LogRun, "logBytes"> & { logBytes: bigint; removed: boolean })
);

const RUNS = `
  select w.tenant_id as "tenantId", w.id as "workloadId", w.status, p.id, p.stage_id as "stageId", p.generation,
    p.log_bytes as "logBytes", p.log_sha256 as "logSha256", p.log_committed_at as "logCommittedAt",
    p.log_complete as "logComplete", p.log_truncated as "logTruncated", p.log_tail_lost as "logTailLost",
    p.log_removed_at is not null as removed
  from compute.workload w
  left join (compute.placement p join compute.stage s on s.id = p.stage_run_id)
    on p.tenant_id = w.tenant_id and p.workload_id = w.id
  where (w.tenant_id, w.id) ${ONE_OF_THE_OWNED}
  order by w.id, s.position, p.generation`;

/** A log whose time is over reads like one that nobody wrote to. */
function runOf(row: Row): LogRun[] {
  if (row.id === null) return [];
  const { status, removed, logBytes, logSha256, ...run } = row;
  return [{ ...run, logBytes: removed ? 0 : Number(logBytes), logSha256: removed ? null : logSha256 }];
}
