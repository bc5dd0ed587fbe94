import { defineJob } from "../../infra/queue/define-job.ts";

/** Looks for capacity for a stage that is placing, takes it and sends the order out. */
export const placeStage = defineJob<{ stageRunId: string }>({
  name: "compute.placeStage",
  queue: "placement",
  concurrency: 16,
  timeoutMs: 60_000,
  attempts: 5,
});

/** Fails an attempt whose runner has not connected by its boot deadline. */
export const superviseBoot = defineJob<{ orderId: string }>({
  name: "compute.superviseBoot",
  queue: "placement",
  concurrency: 16,
  timeoutMs: 30_000,
  attempts: 5,
});

/** Ends an attempt at its supplier, again and again until it is confirmed gone; then gives its capacity back. */
export const releaseAttempt = defineJob<{ orderId: string }>({
  name: "compute.releaseAttempt",
  queue: "placement",
  concurrency: 16,
  timeoutMs: 60_000,
  attempts: 5,
});

/** Puts a generation's complete log into the object store. */
export const commitLog = defineJob<{ placementId: string }>({
  name: "compute.commitLog",
  queue: "lifecycle",
  concurrency: 4,
  timeoutMs: 120_000,
  attempts: 5,
});

/** Posts the charge of a placement whose resources are gone, once. */
export const settlePlacement = defineJob<{ placementId: string }>({
  name: "compute.settlePlacement",
  queue: "lifecycle",
  concurrency: 8,
  timeoutMs: 30_000,
  attempts: 5,
});

/** Ends a workload whose deadline has passed. */
export const enforceDeadline = defineJob<{ workloadId: string }>({
  name: "compute.enforceDeadline",
  queue: "lifecycle",
  concurrency: 4,
  timeoutMs: 30_000,
  attempts: 5,
});

/** Lets go of what a finished workload had pinned, once nothing of it is left. */
export const closeWorkload = defineJob<{ workloadId: string }>({
  name: "compute.closeWorkload",
  queue: "lifecycle",
  concurrency: 8,
  timeoutMs: 30_000,
  attempts: 5,
});
