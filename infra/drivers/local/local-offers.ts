import type { CapacityFact, OfferFact } from "../driver.ts";
import type { DeclaredAccelerator } from "./accelerators.ts";
import type { InstalledGpu } from "./nvidia.ts";

/** What the local machine has, as measured. */
export interface Machine {
  /** Stable over restarts. */
  id: string;
  cores: number;
  memoryMb: number;
  diskFreeBytes: number;
}

export interface OfferSettings {
  region: string;
  rateMicrosPerHour: bigint;
  declared: DeclaredAccelerator[];
  installed: InstalledGpu[];
  isolated: boolean;
}

const SLOTS_PER_CORE = 16;
const CPU_MILLIS_PER_CORE = 1_600;
/** Part of memory that guests may have, in percent; the rest is the platform's and the system's. */
const MEMORY_PERCENT = 80;
const COUNTS = [1, 2, 4, 8];
const HOST_USERLAND = "image not pulled: host userland";

/** Everything that one machine offers. All offers share its processor and memory; GPUs are counted together. */
export function localOffers(machine: Machine, settings: OfferSettings): OfferFact[] {
  const devices = [...groups(settings.installed), ...settings.declared.map((one) => ({ ...one, simulated: true }))];
  const capacity: CapacityFact = {
    key: machine.id,
    cpuMillis: CPU_MILLIS_PER_CORE * machine.cores,
    memoryMb: Math.floor((machine.memoryMb * MEMORY_PERCENT) / 100),
    gpus: devices.reduce((total, device) => total + device.count, 0),
    slots: SLOTS_PER_CORE * machine.cores,
  };
  const base = { region: settings.region, capacity, ...common(machine, settings) };
  const cpu: OfferFact = {
    ...base,
    sku: "local-cpu",
    computeClass: "vm",
    accelerator: null,
    gpuCount: 0,
    deviceMemoryGb: 0,
    simulated: false,
    note: HOST_USERLAND,
  };
  return [cpu, ...devices.flatMap((device) => acceleratorOffers(base, device))];
}

function common(machine: Machine, settings: OfferSettings) {
  return {
    vcpus: machine.cores,
    hostMemoryGb: Math.floor((machine.memoryMb * MEMORY_PERCENT) / 100 / 1024),
    diskGb: Math.floor(machine.diskFreeBytes / 1024 ** 3),
    networkGbps: null,
    rateMicrosPerHour: settings.rateMicrosPerHour,
    interruptible: false,
    isolated: settings.isolated,
    expectedBootSeconds: 1,
    poolId: null,
    tenantId: null,
  };
}

interface Devices {
  family: string;
  count: number;
  deviceMemoryGb: number;
  simulated: boolean;
}

function acceleratorOffers(
  base: Omit<OfferFact, "sku" | "computeClass" | "accelerator" | "gpuCount" | "deviceMemoryGb" | "simulated" | "note">,
  devices: Devices,
): OfferFact[] {
  const prefix = devices.simulated ? "sim" : "local";
  const name = devices.family.toLowerCase().replace(/[^a-z0-9]+/g, "");
  return COUNTS.filter((count) => count <= devices.count).map((gpuCount) => ({
    ...base,
    sku: `${prefix}-${name}-${gpuCount}x`,
    computeClass: "accelerator",
    accelerator: devices.family,
    gpuCount,
    deviceMemoryGb: devices.deviceMemoryGb,
    simulated: devices.simulated,
    note: devices.simulated ? `simulated accelerator; ${HOST_USERLAND}` : HOST_USERLAND,
  }));
}

/** Equal devices together, since an offer is of one kind. */
function groups(installed: InstalledGpu[]): Devices[] {
  const byKind = new Map<string, Devices>();
  for (const { family, memoryGb } of installed) {
    const key = `${family} ${memoryGb}`;
    const known = byKind.get(key) ?? { family, count: 0, deviceMemoryGb: memoryGb, simulated: false };
    byKind.set(key, { ...known, count: known.count + 1 });
  }
  return [...byKind.values()];
}
