import { defineJob } from "../../infra/queue/define-job.ts";

/**
 * Sends one event to a team's webhook, once. Later tries are business time in its row, not runs of this job. A run only
 * waits for a receiver, so many may: dozens of receivers that hang at once leave room for the others.
 */
export const deliverWebhook = defineJob<{ deliveryId: string }>({
  name: "data.deliverWebhook",
  queue: "webhooks",
  concurrency: 256,
  timeoutMs: 30_000,
  attempts: 3,
});

/** Fetches the source of an import that needs no credential of its caller. */
export const importAsset = defineJob<{ assetId: string }>({
  name: "data.importAsset",
  queue: "imports",
  concurrency: 8,
  timeoutMs: 660_000,
  attempts: 5,
});

/** Runs the query of an export and makes its asset. The deadline is business time in its row. */
export const runExport = defineJob<{ exportId: string }>({
  name: "data.runExport",
  queue: "exports",
  concurrency: 2,
  timeoutMs: 660_000,
  attempts: 5,
});

/** Loads an output into its table. A team has fewer at once than a process, so that another's find a place. */
export const loadOutput = defineJob<{ loadId: string }>({
  name: "data.loadOutput",
  queue: "loads",
  concurrency: 3,
  timeoutMs: 1_860_000,
  attempts: 5,
});

/** Writes the final figures of a run beside the rows that were loaded from it. */
export const recordRun = defineJob<{ loadId: string }>({
  name: "data.recordRun",
  queue: "runs",
  concurrency: 4,
  timeoutMs: 90_000,
  attempts: 3,
});
