import type { AwaitedTime } from "../infra/db/draw-in.ts";
import { OUTBOX_TIMES } from "../infra/db/outbox-times.ts";
import { computeTimes } from "../subgraphs/compute/awaited-times.ts";
import type { ComputeSettings } from "../subgraphs/compute/settings.ts";
import { DATA_TIMES } from "../subgraphs/data/awaited-times.ts";

/** Every time that anything of the platform waits for. A table whose rows wait for one is added by its domain. */
export function awaitedTimes(settings: Pick<ComputeSettings, "bootTimeoutMs">): AwaitedTime[] {
  return [...OUTBOX_TIMES, ...computeTimes(settings), ...DATA_TIMES];
}
