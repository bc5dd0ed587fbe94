import { type Micros, toUsd } from "../../../infra/kernel/micros.ts";
import { accruedCharge } from "../ledger/meter.ts";
import type { Workload } from "../workload/workload.entity.ts";
import type { Placement } from "./placement.entity.ts";
import type { PlacementFigures } from "./placement-figures.ts";

/** How a placement's capacity fits what was asked for, in a word. */
export function fitClass(placement: Pick<Placement, "cpuFallback" | "accelerator">): string {
  if (placement.cpuFallback) return "cpu_fallback";
  return placement.accelerator === null ? "cpu" : "accelerator";
}

/**
 * The route in wire spelling: catalogue ids and facts of the machine, nothing of suppliers. What is not known is left
 * out where the contract has no null for it.
 */
export function routeDocument(
  workload: Workload,
  placement: Placement,
  all: readonly Placement[],
  figures: PlacementFigures,
  now: Date,
): object {
  return {
    offer_id: placement.sku,
    fit_class: fitClass(placement),
    compute_class: placement.computeClass,
    resources: {
      vcpus: placement.vcpus,
      host_memory_gb: placement.memoryGb,
      device_memory_gb: placement.deviceMemoryGb,
      disk_gb: figures.diskGb,
      ...(figures.networkGbps === null ? {} : { network_gbps: figures.networkGbps }),
      ...(placement.accelerator === null ? {} : { accelerator: placement.accelerator }),
      gpu_count: placement.gpuCount,
    },
    memory_gb: placement.accelerator === null ? placement.memoryGb : placement.deviceMemoryGb,
    price_usd_hour: toUsd(placement.rateMicrosPerHour),
    interruptible: placement.interruptible,
    region: placement.region,
    expected_cost_usd: null,
    expected_hours: null,
    ...remainingBudget(workload, all, now),
    cost: null,
    fallback_graph: null,
    rejected: placement.rejected.examples.map(({ reason }) => ({ reason })),
  };
}

/** What the workload's own limit leaves; nothing where it has none. */
function remainingBudget(workload: Workload, placements: readonly Placement[], now: Date): object {
  if (workload.maxCostMicros === null) return {};
  const accrued = placements.reduce<Micros>((sum, p) => sum + accruedCharge(p, now).totalMicros, 0n);
  const left = workload.maxCostMicros - workload.spendMicros - accrued;
  return { remaining_budget_usd: toUsd(left > 0n ? left : 0n) };
}
