import type { StageSpec } from "../../stage/stage.entity.ts";
import type { WorkloadPayload } from "../workload.payload.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import { refuse } from "./refuse.ts";
import { hasControl, utf8Bytes } from "./text.ts";

const MAX_POOL_BYTES = 200;

/** Where the customer wants the workload: private capacity first unless it says otherwise. */
export function checkPlacement(given: WorkloadPayload["placement"]): StageSpec["placement"] {
  if (given === undefined) return { kind: "any" };
  const { pool, prefer } = given as { pool?: string; prefer?: string };
  if ((pool === undefined) === (prefer === undefined)) refuse(WORKLOAD.invalid_placement, "/placement");
  if (pool === undefined) {
    if (prefer !== "any") refuse(WORKLOAD.invalid_placement, "/placement/prefer");
    return { kind: "market" };
  }
  if (pool === "" || utf8Bytes(pool) > MAX_POOL_BYTES || pool !== pool.trim() || hasControl(pool))
    refuse(WORKLOAD.invalid_placement, "/placement/pool", "placement.pool is no pool id.");
  return { kind: "pool", poolId: pool };
}
