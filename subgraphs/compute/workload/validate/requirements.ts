import type { Requirements } from "../workload.payload.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import { gpuFamily } from "./gpu-families.ts";
import { at, type Pointer, refuse, spoken } from "./refuse.ts";

/** Words of an abandoned feature: accepted from old clients, without effect. */
const OPTIMIZATIONS = ["", "automatic", "lowest_cost", "lower_cost", "balanced", "faster", "fastest"];

/** What a stage needs, decided: the stage's values where it gave any, else the workload's. */
export interface ResolvedRequirements {
  computeClass: "vm" | "accelerator";
  /** Nobody asked for accelerators in any way, so that the CPU may stand in where a deployment allows it. */
  computeClassDefaulted: boolean;
  gpu: string | null;
  gpuCount: number;
  /** Per device; where there is none, of the host. */
  deviceMemoryGb: number;
  vcpus: number;
  diskGb: number;
}

/** Checks each member by itself and spells the GPU family canonically. */
export function checkRequirements(given: Requirements, field: Pointer): Requirements {
  const { compute_class, gpu, gpu_count, gpu_interconnect } = given;
  if (compute_class !== undefined && !["", "vm", "accelerator"].includes(compute_class))
    refuse(WORKLOAD.invalid_compute_class, at(field, "compute_class"), `${compute_class} is no compute class.`);
  if (gpu_count !== undefined && ![1, 2, 4, 8].includes(gpu_count))
    refuse(WORKLOAD.invalid_gpu_count, at(field, "gpu_count"));
  if (gpu_interconnect !== undefined && !["", "any"].includes(gpu_interconnect))
    refuse(WORKLOAD.unsupported_interconnect, at(field, "gpu_interconnect"));
  for (const name of ["peak_memory_gb", "vcpus", "disk_gb", "dataset_bytes"] as const)
    requireAmount(given[name], at(field, name));
  checkOptimization(given.optimization, at(field, "optimization"));
  const family = gpu === undefined || gpu.trim() === "" ? null : gpuFamily(gpu);
  if (gpu !== undefined && gpu.trim() !== "" && family === null)
    refuse(WORKLOAD.invalid_gpu, at(field, "gpu"), `${gpu.slice(0, 80)} is no known GPU family.`);
  return family === null ? given : { ...given, gpu: family };
}

/** Refuses a word that never meant anything. */
export function checkOptimization(word: string | undefined, field: Pointer): void {
  if (word !== undefined && !OPTIMIZATIONS.includes(word))
    refuse(WORKLOAD.invalid_requirements, field, `${spoken(field)} has no effect; leave it out.`);
}

function requireAmount(amount: number | undefined, field: Pointer): void {
  if (amount !== undefined && !(Number.isFinite(amount) && amount >= 0))
    refuse(WORKLOAD.invalid_requirements, field, `${spoken(field)} must be zero or more.`);
}

/** A stage's requirements over the workload's; zero and empty inherit. Both have been checked. */
export function resolveRequirements(workload: Requirements, stage: Requirements, field: Pointer): ResolvedRequirements {
  const pick = <K extends keyof Requirements>(name: K) => stage[name] || workload[name];
  const asked = pick("compute_class") || null;
  const gpu = pick("gpu") || null;
  const deviceMemoryGb = pick("peak_memory_gb") || 0;
  const gpuCount = pick("gpu_count") || 1;
  const needsAccelerator = gpu !== null || deviceMemoryGb > 0 || gpuCount > 1;
  if (asked === "vm" && gpu !== null)
    refuse(WORKLOAD.invalid_compute_class, at(field, "compute_class"), `The class vm has no ${gpu}.`);
  return {
    computeClass: asked ?? "accelerator",
    computeClassDefaulted: asked === null && !needsAccelerator,
    gpu,
    gpuCount: asked === "vm" ? 0 : gpuCount,
    deviceMemoryGb,
    vcpus: pick("vcpus") || 0,
    diskGb: pick("disk_gb") || 0,
  };
}
