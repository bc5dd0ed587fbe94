import type { MachineKind } from "../../infra/drivers/simulated/market.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { ComputeSettings } from "../../subgraphs/compute/settings.ts";
import { type Kept, keptFor } from "../../workers/reconcile/retention.ts";

/** A simulated deployment's settings: those of a fresh one, with short logs. */
export const SIMULATED_SETTINGS: ComputeSettings = {
  publicUrl: "http://simulated.invalid",
  intakeUrl: "http://simulated.invalid/runner/v1",
  feeBasisPoints: 1_000,
  firstWindowMs: LIMITS.firstWindowMs,
  cpuFallback: true,
  workloadNetwork: "open",
  allowPrivateHosts: [],
  leaseMs: LIMITS.leaseMs,
  heartbeatIntervalMs: LIMITS.heartbeatIntervalMs,
  bootTimeoutMs: LIMITS.bootTimeoutMs,
  offerQuarantineMs: LIMITS.offerQuarantineMs,
  cancelGraceMs: LIMITS.cancelGraceMs,
  logCaptureBytes: LIMITS.logCaptureBytes,
  logCommittedBytes: LIMITS.logCommittedBytes,
  defaultCpuMillis: 500,
  defaultMemoryMb: 1_024,
  defaultDiskGb: 10,
  newTeamCreditMicros: 0n,
  concurrentRunsLimit: 20,
};

/** How long a simulated deployment keeps things: results so short that they go while others come. */
export const SIMULATED_KEPT: Kept = { ...keptFor(0), resultsMs: 10 * 60_000, unusedObjectsMs: 5 * 60_000 };

const CPU: MachineKind = {
  sku: "sim-cpu",
  region: "sim-east",
  computeClass: "vm",
  vcpus: 4,
  hostMemoryGb: 16,
  diskGb: 100,
  networkGbps: null,
  accelerator: null,
  gpuCount: 0,
  deviceMemoryGb: 0,
  rateMicrosPerHour: 100_000n,
  interruptible: true,
  isolated: true,
  note: null,
  expectedBootSeconds: 2,
  poolId: null,
  tenantId: null,
  machines: 2,
  ordersPerMachine: 4,
  bootMs: 2_000,
  priceSwing: 0.4,
};

/** What the simulated market sells while nothing is wrong with it. */
export const SIMULATED_KINDS: readonly MachineKind[] = [
  CPU,
  { ...CPU, region: "sim-west", rateMicrosPerHour: 140_000n, machines: 3, ordersPerMachine: 2, bootMs: 20_000 },
  {
    ...CPU,
    sku: "sim-h100-1x",
    computeClass: "accelerator",
    accelerator: "H100",
    gpuCount: 1,
    deviceMemoryGb: 80,
    rateMicrosPerHour: 2_000_000n,
    machines: 3,
    ordersPerMachine: 1,
    bootMs: 30_000,
    expectedBootSeconds: 30,
  },
  {
    ...CPU,
    sku: "sim-a100-1x",
    computeClass: "accelerator",
    accelerator: "A100",
    gpuCount: 1,
    deviceMemoryGb: 40,
    rateMicrosPerHour: 1_200_000n,
    interruptible: false,
    machines: 2,
    ordersPerMachine: 1,
    bootMs: 10_000,
    expectedBootSeconds: 10,
  },
];
