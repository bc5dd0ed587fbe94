/** GPU families that may be asked for, as they are spelled everywhere else. Memory is a requirement of its own. */
export const GPU_FAMILIES = [
  "A100",
  "H100",
  "H200",
  "B200",
  "A10",
  "A10G",
  "L4",
  "L40",
  "L40S",
  "T4",
  "V100",
  "RTX A6000",
  "RTX 3090",
  "RTX 4090",
  "RTX 5090",
] as const;
export type GpuFamily = (typeof GPU_FAMILIES)[number];

const squeezed = (text: string) => text.toUpperCase().replaceAll(/[\s_-]+/g, "");

const BY_SPELLING: ReadonlyMap<string, GpuFamily> = new Map([
  ...GPU_FAMILIES.map((family) => [squeezed(family), family] as const),
  ["A6000", "RTX A6000"],
]);

/** The family of a customer's spelling, whatever its case, spaces, dashes and maker's name; null for an unknown one. */
export function gpuFamily(spelling: string): GpuFamily | null {
  return BY_SPELLING.get(squeezed(spelling).replace(/^NVIDIA/, "")) ?? null;
}
