import type { AwaitedTime } from "../../infra/db/draw-in.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { FARTHEST_TRY_MS } from "./placement/waiting.ts";
import type { ComputeSettings } from "./settings.ts";

const STAGE = { table: "compute.stage", key: "id" };
const ATTEMPT = { table: "compute.attempt", key: "id" };

/** The times that compute's reconcilers and jobs wait for. */
export function computeTimes({ bootTimeoutMs }: Pick<ComputeSettings, "bootTimeoutMs">): AwaitedTime[] {
  const bootMs = `select greatest(${bootTimeoutMs}, 3000 * max(o.expected_boot_seconds)) from compute.offer o where o.id = t.offer_id`;
  return [
    { ...STAGE, column: "next_try_at", where: "t.status = 'placing'", farthestMs: FARTHEST_TRY_MS, graceMs: 0 },
    {
      ...{ ...ATTEMPT, column: "next_check_at", where: "t.state not in ('failed', 'ended', 'gone')" },
      ...{ farthestMs: 2 * (LIMITS.launchTimeoutMs + LIMITS.attemptCheckMs), graceMs: 0 },
    },
    {
      ...{ ...ATTEMPT, column: "next_check_at", where: "t.state in ('failed', 'ended')" },
      ...{ farthestMs: 2 * LIMITS.attemptCheckMaxMs, graceMs: 0 },
    },
    {
      ...{ ...ATTEMPT, column: "boot_deadline_at", where: "t.state in ('launching', 'booting')" },
      ...{ farthestMs: bootMs, graceMs: `(${bootMs})` },
    },
    {
      ...{ ...ATTEMPT, column: "gone_seen_at", where: "t.state in ('booting', 'running')" },
      ...{ farthestMs: 0, graceMs: 0 },
    },
    { table: "compute.supplier", key: "id", column: "seen_at", where: "true", farthestMs: 0, graceMs: 0 },
    {
      ...{ table: "compute.result_object", key: "sha256", column: "removing_since" },
      ...{ where: "t.removing_since is not null", farthestMs: 0, graceMs: 0 },
    },
  ];
}
