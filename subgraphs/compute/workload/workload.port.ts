import type { WorkloadPort } from "../published.ts";
import { findWorkload } from "./workload.reads.ts";

/** Compute's answer to other domains' questions about workloads. */
export const workloads: WorkloadPort = {
  exists: async (q, tenantId, workloadId) => (await findWorkload(q, tenantId, workloadId)) !== null,
};
