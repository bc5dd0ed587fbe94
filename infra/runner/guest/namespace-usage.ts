import type { LimitGroup } from "../isolation/cgroups.ts";
import { pidsInNamespaceOf, processorMs, proportionalMemoryBytes } from "../isolation/processes.ts";
import type { GuestUsage } from "./guest.ts";

/** From the guest's control group where there is one, else summed over the processes of its PID namespace. */
export function namespaceUsage(group: LimitGroup | null, namespaceInit: number): GuestUsage {
  const memoryBytes = group?.memoryBytes() ?? null;
  const cpuMs = group?.cpuMs() ?? null;
  if (memoryBytes !== null && cpuMs !== null) return { cpuMs, memoryBytes };
  const pids = pidsInNamespaceOf(namespaceInit);
  return {
    cpuMs: cpuMs ?? sum(pids.map(processorMs)),
    memoryBytes: memoryBytes ?? sum(pids.map(proportionalMemoryBytes)),
  };
}

export function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
