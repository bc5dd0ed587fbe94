import type { AwaitedTime } from "./draw-in.ts";

/**
 * Jobs that were written down while the clock stood ahead are due; each looks by itself whether it has come too early,
 * and then asks to run later.
 */
export const OUTBOX_TIMES: readonly AwaitedTime[] = [
  {
    ...{ table: "infra.outbox", key: "id", column: "due_at", where: "true" },
    ...{ farthestMs: "extract(epoch from t.due_at - t.created_at) * 1000", graceMs: 0 },
  },
];
