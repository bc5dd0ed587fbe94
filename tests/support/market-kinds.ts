import type { MachineKind } from "../../infra/drivers/simulated/market.ts";

/** A CPU machine of the market that takes many orders. */
export const CPU_KIND: MachineKind = {
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
  interruptible: false,
  isolated: true,
  note: null,
  expectedBootSeconds: 1,
  poolId: null,
  tenantId: null,
  machines: 1,
  ordersPerMachine: 8,
  bootMs: 0,
};

/** An H100 machine of the market. */
export const H100_KIND: MachineKind = {
  ...CPU_KIND,
  sku: "sim-h100-1x",
  computeClass: "accelerator",
  accelerator: "H100",
  gpuCount: 1,
  deviceMemoryGb: 80,
  rateMicrosPerHour: 2_000_000n,
  machines: 2,
  ordersPerMachine: 1,
};
