import type { MatchContext } from "../../subgraphs/compute/offer/match-offers.ts";
import type { Offer } from "../../subgraphs/compute/offer/offer.entity.ts";
import type { StageSpec } from "../../subgraphs/compute/stage/stage.entity.ts";
import { stageSpec, TENANT } from "./compute-fixtures.ts";

export const NOW = new Date("2026-03-01T00:00:00Z");
export const minutes = (n: number) => new Date(NOW.getTime() + n * 60_000);

let count = 0;
export function offer(over: Partial<Offer> = {}): Offer {
  const id = over.id ?? `off_${String(++count).padStart(6, "0")}`;
  return {
    supplier: "sim",
    sku: id,
    region: "east",
    capacityId: `sim/${id}`,
    computeClass: "accelerator",
    vcpus: 8,
    hostMemoryGb: 64,
    diskGb: 500,
    networkGbps: null,
    accelerator: "H100",
    gpuCount: 1,
    deviceMemoryGb: 80,
    rateMicrosPerHour: 2_000_000n,
    interruptible: false,
    simulated: false,
    isolated: true,
    note: null,
    expectedBootSeconds: 10,
    poolId: null,
    tenantId: null,
    seenAt: NOW,
    withdrawnAt: null,
    quarantinedUntil: null,
    failuresInRow: 0,
    version: 1,
    ...over,
    id,
  };
}

export const cpu = (over: Partial<Offer> = {}) =>
  offer({
    computeClass: "vm",
    accelerator: null,
    gpuCount: 0,
    deviceMemoryGb: 0,
    rateMicrosPerHour: 100_000n,
    ...over,
  });

export function spec(over: Partial<StageSpec> = {}): StageSpec {
  return { ...stageSpec, computeClassDefaulted: false, ...over };
}

export function context(over: Partial<MatchContext> = {}): MatchContext {
  return {
    now: NOW,
    tenantId: TENANT,
    cpuFallback: false,
    defaults: { cpuMillis: 100, memoryMb: 512 },
    budget: null,
    ...over,
  };
}
