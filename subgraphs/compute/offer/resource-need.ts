import type { StageSpec } from "../stage/stage.entity.ts";
import type { Capacity } from "./offer.entity.ts";

/** What is reserved of a capacity for one order, besides its slot. */
export interface ResourceNeed {
  cpuMillis: number;
  memoryMb: number;
  gpus: number;
}

/** What a stage gets of a host when it does not say. */
export interface NeedDefaults {
  cpuMillis: number;
  memoryMb: number;
}

type Wants = Pick<StageSpec, "computeClass" | "vcpus" | "deviceMemoryGb">;

/**
 * What a stage takes of the capacity behind an offer. A memory requirement is per device; where the stage asks for the
 * class `vm` itself there is no device, and it is the host's memory that must suffice.
 */
export function resourceNeed(spec: Wants, offer: { gpuCount: number }, defaults: NeedDefaults): ResourceNeed {
  const hostMemoryMb = spec.computeClass === "vm" ? Math.ceil(spec.deviceMemoryGb * 1024) : 0;
  return {
    cpuMillis: spec.vcpus > 0 ? Math.ceil(spec.vcpus * 1000) : defaults.cpuMillis,
    memoryMb: Math.max(hostMemoryMb, defaults.memoryMb),
    gpus: offer.gpuCount,
  };
}

/** What is free of a capacity. */
export type Room = ResourceNeed & { slots: number };

/** The unreserved part of a capacity; negative where a supplier shrank what is in use. */
export function roomOf(
  c: Pick<
    Capacity,
    "cpuMillis" | "cpuMillisUsed" | "memoryMb" | "memoryMbUsed" | "gpus" | "gpusUsed" | "slots" | "slotsUsed"
  >,
): Room {
  return {
    cpuMillis: c.cpuMillis - c.cpuMillisUsed,
    memoryMb: c.memoryMb - c.memoryMbUsed,
    gpus: c.gpus - c.gpusUsed,
    slots: c.slots - c.slotsUsed,
  };
}

/** Takes a need out of a room in place; false, and nothing taken, when it does not fit. */
export function takeRoom(room: Room, need: ResourceNeed): boolean {
  if (room.slots < 1 || room.cpuMillis < need.cpuMillis || room.memoryMb < need.memoryMb || room.gpus < need.gpus)
    return false;
  room.slots -= 1;
  room.cpuMillis -= need.cpuMillis;
  room.memoryMb -= need.memoryMb;
  room.gpus -= need.gpus;
  return true;
}
