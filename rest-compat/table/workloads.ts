import { LIMITS } from "../../infra/kernel/limits.ts";
import { NOT_IN_RELEASE } from "../../infra/kernel/not-in-release.ts";
import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import { downloadOutput } from "../bytes/download-output.ts";
import { workloadLogs } from "../bytes/workload-logs.ts";
import type { Table, WireRequest } from "../row.ts";

/** Batch jobs. */
export const WORKLOADS: Table = {
  createWorkload: {
    kind: "graph",
    give: ({ workload: { id }, status, revision }) => ({ id, workload_id: id, status, revision }),
    refuseFirst: refuseBuckets,
    refuseRepeats: ["/rl"],
  },
  validateWorkload: {
    kind: "graph",
    refuseFirst: refuseBuckets,
    refuseRepeats: ["/rl"],
  },
  listWorkloads: { kind: "graph", take: listArguments },
  getWorkload: { kind: "graph" },
  cancelWorkload: {
    kind: "graph",
    take: ({ path }) => ({ input: path }),
  },
  listWorkloadEvents: {
    kind: "graph",
    take: ({ path, query }) => ({ ...path, after: query.after, first: LIMITS.eventPage }),
  },
  liveLogs: { kind: "graph", give: (reply) => reply.liveLog },
  getWorkloadLogs: workloadLogs,
  listWorkloadOutputs: { kind: "graph" },
  downloadWorkloadOutput: downloadOutput,
  reloadWorkloadOutput: {
    kind: "graph",
    take: ({ path, query }) => ({ input: { workload_id: path.id, name: path.name, stage_id: query.stage } }),
    give: (reply) => reply.load,
  },
  listWorkloadArtifacts: { kind: "graph" },
  getWorkloadLedger: { kind: "graph", give: ({ workload_id, ledger }) => ({ workload_id, ...ledger }) },
  getWorkloadRouting: { kind: "graph" },
};

/** Without this the answer would be about the bucket's members, one after the other, and then about the bucket. */
function refuseBuckets({ inputs }: Readonly<Record<string, unknown>>): void {
  if (!Array.isArray(inputs)) return;
  const index = inputs.findIndex(
    (input: unknown) => typeof (input as { bucket?: unknown } | null)?.bucket === "object",
  );
  if (index >= 0) throw new Refused(NOT_IN_RELEASE.bucket_inputs_unsupported, { field: `/inputs/${index}/bucket` });
}

/** A page size that is missing or out of range means the default here, unlike anywhere else. */
function listArguments({ query }: WireRequest): Record<string, unknown> {
  const {
    limit = 0,
    offset = 0,
    status,
    scope,
  } = query as { limit?: number; offset?: number; status?: string; scope: string };
  if (offset < 0) throw new Refused(COMMON.invalid_cursor, { field: "/offset", message: "offset must be at least 0." });
  const first = limit >= 1 && limit <= LIMITS.listPageMax ? limit : LIMITS.listPageDefault;
  return { first, offset, status: status?.split(",").map((word) => word.trim()), scope };
}
